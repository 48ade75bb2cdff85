"""Options that stop the writers' own expiry, and with a hold on the table every removal: Paimon changes options with a
new schema, which each writer reads before its next commit.

They expire at every commit, by the options that they found when they started. So the hold writes options with which
they expire nothing, of every branch, and notes what these said before; when the last hold goes, they say it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firnline.foreign import json_of
from firnline.formats.paimon import names
from firnline.formats.paimon.reading import fields
from firnline.formats.paimon.reading.branches import Branch, branches_of
from firnline.formats.paimon.reading.folder import Files
from firnline.formats.paimon.reading.schema import CHANGELOG_OPTIONS, NOTED, changelog_range, schemas_of
from firnline.formats.paimon.reading.snapshot import PaimonSnapshot
from firnline.formats.paimon.reading.state import files_in, ref_name
from firnline.journal.layout import PROPERTIES
from firnline.model.locations import join
from firnline.policy.native import LARGEST
from firnline.ports.formats import State

_NOTES = "firnline."
COLLECT = "gc.enabled"
"""A word against any removal. Paimon has none, so it is a note among firnline's own."""

BEFORE_HOLD = "firnline.paimon.before-hold"
"""What the options of each branch said before a hold on the table: null where they said nothing."""

Before = dict[str, dict[str, str | None]]


def is_note(name: str) -> bool:
    """Tells whether a property is firnline's own; all others are the table's options."""
    return name == COLLECT or name.startswith(_NOTES)


def before_hold(properties: Mapping[str, str], location: str) -> Before:
    """Returns what a hold on the table wrote over, by branch and option; nothing where there is no such hold."""
    where = join(location, PROPERTIES)
    said = fields.parse(properties.get(BEFORE_HOLD, "{}"), where)
    if not all(isinstance(each, dict) for each in said.values()):
        raise fields.damaged(where, f"{BEFORE_HOLD} is {properties[BEFORE_HOLD]!r}")
    return {branch: dict(options) for branch, options in said.items()}


def as_before(branch: Branch, before: Before) -> dict[str, str]:
    """Returns the options of a branch without what a hold on the table wrote over them."""
    options = {**branch.schema.options, **before.get(branch.name, {})}
    return {name: value for name, value in options.items() if value is not None}


def new_schemas(files: Files, location: str, wanted: Mapping[str, Mapping[str, str]], now_ms: int) -> dict[str, str]:
    """Returns a new schema file for each branch whose options are not yet as wanted. Unknown fields survive."""
    found: dict[str, str] = {}
    for branch in branches_of(files, location).values():
        options = wanted[branch.name]
        if options != branch.schema.options:
            folder, number = names.branch_folder(branch.name), branch.schema.number
            path = f"{folder}schema/schema-{number}"
            before = fields.parse(files[path], join(location, path))
            after = {**before, "id": number + 1, "options": options, "timeMillis": _after(before, now_ms)}
            found[f"{folder}schema/schema-{number + 1}"] = json_of(after, indent=2)
    return found


def _after(schema: Mapping[str, Any], now_ms: int) -> int:
    """Returns the time of the schema after this one: never before it, though its writer's clock may be ahead."""
    before = schema.get("timeMillis")
    return max(now_ms, before) if isinstance(before, int) else now_ms


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


def expiry_off(state: State) -> dict[str, str]:
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


_TAGS = {"tag.time-expire-enabled": "false"}
"""Writers also delete tags whose time is over."""

Options = dict[str, dict[str, str]]


def held(branches: Mapping[str, Branch], options: Options, before: Before) -> tuple[Options, Before]:
    """Returns the options of each branch with which its writers expire nothing, and what they said before."""
    wanted = {**quiet_options(branches), **_TAGS}
    after: Options = {}
    noted: Before = {}
    for name, said in options.items():
        over = {each: said.get(each) for each, value in wanted.items() if said.get(each) != value}
        noted[name] = {**over, **before.get(name, {})}
        after[name] = {**said, **wanted}
    return after, {name: over for name, over in noted.items() if over}


def released(branches: Mapping[str, Branch], before: Before) -> Options:
    """Returns the options of each branch as they were. Where one was changed since the hold, those that go with it stay
    as they are too: the lowest number of one time and the highest of another may contradict each other.
    """
    wanted = {**quiet_options(branches), **_TAGS}
    found: Options = {}
    for name, branch in branches.items():
        changed = {_group(each) for each, value in wanted.items() if branch.schema.options.get(each) != value}
        ours = {each: value for each, value in before.get(name, {}).items() if _group(each) not in changed}
        found[name] = as_before(branch, {name: ours})
    return found


def _group(option: str) -> str:
    return option.partition(".")[0]
