"""Turning the writers' own expiry off: theirs looks at one branch alone, and loses files of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firnline.formats.paimon import names
from firnline.formats.paimon.branches import Branch, branches_of
from firnline.formats.paimon.folder import Files
from firnline.formats.paimon.options import as_before, before_hold, is_note
from firnline.formats.paimon.retention import CHANGELOG_OPTIONS, NOTED, changelog_range
from firnline.formats.paimon.schema import schemas_of
from firnline.formats.paimon.snapshot import PaimonSnapshot
from firnline.formats.paimon.state import files_in, ref_name
from firnline.policy.ranges import LARGEST
from firnline.ports.formats import State

_EVER = "36500 d"
"""Longer than any table keeps snapshots: by this alone Paimon's readers still look for long-lived changelogs."""


def quiet_options(branches: Mapping[str, Branch]) -> dict[str, str]:
    """Returns the options with which no writer expires a snapshot or a changelog.

    Changelogs are kept by their age alone: where more are to stay than there are, Paimon 1.4 looks for a changelog with
    a negative number, and the writer's commit fails.
    """
    ever = str(LARGEST)
    found = {"snapshot.num-retained.min": ever, "snapshot.num-retained.max": ever}
    if any(branch.decoupled for branch in branches.values()):
        least, most, lasting = CHANGELOG_OPTIONS
        found |= {least: "1", most: ever, lasting: _EVER}
    return found


def quieted(state: State) -> dict[str, str]:
    """Returns the options with which no writer expires anything, where any branch has others, and notes of what they
    said of changelogs: from then on firnline goes by these. For notes the main branch speaks for all.

    A branch that is made from an old tag gets the schemas of that time: it has the options from before. Options that a
    hold on the table wrote go with the hold, so they count as what they were before it.
    """
    branches = branches_of(files_in(state), state.location)
    found = quiet_options(branches)
    if any(branch.decoupled for branch in branches.values()):
        rule = changelog_range(branches[names.MAIN].schema, state.properties)
        said = (str(rule.at_least), str(rule.at_most), f"{rule.age_ms} ms")
        found |= {NOTED + name: value for name, value in zip(CHANGELOG_OPTIONS, said, strict=True)}
    before = before_hold(state.properties, state.location)
    own = [as_before(branch, before) for branch in branches.values()]
    return {name: value for name, value in found.items() if _lack(name, value, [state.properties, *own])}


def unaware(state: State) -> list[str]:
    """Returns the branches whose newest snapshots were written by a job that does not know yet that it must not expire:
    it goes by the options that it found when it started, until it is started again.
    """
    files, branches = files_in(state), branches_of(files_in(state), state.location)
    wanted = quiet_options(branches)
    return [ref_name(each) for each in branches.values() if _has_unaware(each, files, state.location, wanted)]


def _has_unaware(branch: Branch, files: Files, location: str, wanted: Mapping[str, str]) -> bool:
    """Tells whether a job whose last commit came after the options, or the newest of all, was written without them."""
    quiet = {
        number: schema
        for number, schema in schemas_of(files, branch.name, location).items()
        if wanted.items() <= schema.options.items()
    }
    if branch.schema.number not in quiet or branch.latest is None:
        return False
    since_ms = min(each.time_ms for each in quiet.values())
    last: dict[str, PaimonSnapshot] = {}
    for number in sorted(branch.snapshots):
        last[branch.snapshots[number].user] = branch.snapshots[number]
    newest = branch.snapshots[branch.latest]
    return any(each.schema not in quiet for each in last.values() if each is newest or each.time_ms > since_ms)


def _lack(name: str, value: str, said: Sequence[Mapping[str, str]]) -> bool:
    """Tells whether any branch says otherwise; a note is the table's."""
    return any(each.get(name) != value for each in (said[:1] if is_note(name) else said[1:]))
