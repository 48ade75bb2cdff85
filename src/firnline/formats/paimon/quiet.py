"""Turning the writers' own expiry off: theirs looks at one branch alone, and loses files of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firnline.formats.paimon import names
from firnline.formats.paimon.branches import branches_of
from firnline.formats.paimon.options import is_note
from firnline.formats.paimon.retention import CHANGELOG_OPTIONS, NOTED, changelog_range
from firnline.formats.paimon.state import files_in
from firnline.policy.ranges import LARGEST
from firnline.ports.formats import State

_EVER = "36500 d"
"""Longer than any table keeps snapshots: by this alone Paimon's readers still look for long-lived changelogs."""


def quieted(state: State) -> dict[str, str]:
    """Returns the options with which no writer expires anything, where any branch has others, and notes of what they
    said of changelogs: from then on firnline goes by these. For notes the main branch speaks for all.

    A branch that is made from an old tag gets the schemas of that time: it has the options from before.

    Changelogs are kept by their age alone: where more are to stay than there are, Paimon 1.4 looks for a changelog with
    a negative number, and the writer's commit fails.
    """
    ever = str(LARGEST)
    found = {"snapshot.num-retained.min": ever, "snapshot.num-retained.max": ever}
    branches = branches_of(files_in(state), state.location)
    if any(branch.decoupled for branch in branches.values()):
        rule = changelog_range(branches[names.MAIN].schema, state.properties)
        least, most, lasting = CHANGELOG_OPTIONS
        found |= {least: "1", most: ever, lasting: _EVER}
        said = {least: str(rule.at_least), most: str(rule.at_most), lasting: f"{rule.age_ms} ms"}
        found |= {NOTED + name: value for name, value in said.items()}
    said_now = [state.properties, *(branch.schema.options for branch in branches.values())]
    return {name: value for name, value in found.items() if _lack(name, value, said_now)}


def _lack(name: str, value: str, said: Sequence[Mapping[str, str]]) -> bool:
    """Tells whether any branch says otherwise; a note is the table's."""
    return any(each.get(name) != value for each in (said[:1] if is_note(name) else said[1:]))
