"""Tags and notes as files: what an amendment of the table writes and removes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from firnline.errors import UnsupportedFormat, UsageError
from firnline.foreign import json_of
from firnline.formats.paimon import names
from firnline.formats.paimon.editing.writers import (
    BEFORE_HOLD,
    COLLECT,
    Before,
    Options,
    before_hold,
    held,
    is_note,
    new_schemas,
    released,
)
from firnline.formats.paimon.reading import fields
from firnline.formats.paimon.reading.branches import Branch, branches_of, versions_of
from firnline.formats.paimon.reading.folder import Files
from firnline.formats.paimon.reading.ranges import held_in, kept_tag
from firnline.formats.paimon.reading.snapshot import EASTERNMOST_MS, TAG_CREATED, TAG_RETAINED
from firnline.formats.paimon.reading.state import files_in, tag_ref_name
from firnline.journal.layout import PROPERTIES
from firnline.model.locations import join
from firnline.model.snapshots import Ref, RefKind
from firnline.model.times import SECOND_MS
from firnline.policy.periods import LONGEST_AGE_MS
from firnline.ports.formats import Amendment, State

_LONGER = "nothing was changed; keep it for longer"


def amended(files: Mapping[str, str], state: State, amendment: Amendment, now_ms: int) -> Files:
    """Returns the files with tags written or gone, with other options, and with what firnline notes about the table.

    A note lies beside the table's options: these can only be changed by a new schema.
    """
    after = dict(files)
    for name in amendment.refs_gone:
        after = _without_tag(after, state, name)
    for ref in amendment.refs:
        after[_path_of(state, ref.name)] = _tag_text(state, ref, now_ms)
    notes = _notes(after, state, amendment)
    if any(name == COLLECT or not is_note(name) for name in (*amendment.properties, *amendment.properties_gone)):
        options, notes = _options(branches_of(after, state.location), notes, state.location, amendment)
        after |= new_schemas(after, state.location, options, now_ms)
    if notes:
        after[PROPERTIES] = json_of(notes, sort_keys=True, indent=1)
    else:
        after.pop(PROPERTIES, None)
    return after


def _options(
    branches: Mapping[str, Branch], notes: dict[str, str], location: str, amendment: Amendment
) -> tuple[Options, dict[str, str]]:
    """Returns the options of each branch, and the notes. A hold on the table is a note, and options of its own."""
    before = before_hold(notes, location)
    collects = amendment.properties.get(COLLECT, "true" if COLLECT in amendment.properties_gone else "").lower()
    options = {name: dict(branch.schema.options) for name, branch in branches.items()}
    if collects == "true":
        options, before = released(branches, before), {}
    written = {name: value for name, value in amendment.properties.items() if not is_note(name)}
    for said in options.values():
        said.update(written)
        for name in amendment.properties_gone:
            said.pop(name, None)
    # What is written while a hold is there is meant to outlive it.
    before = {branch: {k: v for k, v in over.items() if k not in written} for branch, over in before.items()}
    if collects not in ("", "true"):
        options, before = held(branches, options, before)
    return options, _with_before(notes, before)


def _with_before(notes: Mapping[str, str], before: Before) -> dict[str, str]:
    noted = {branch: over for branch, over in before.items() if over}
    others = {name: value for name, value in notes.items() if name != BEFORE_HOLD}
    return {**others, BEFORE_HOLD: json_of(noted, sort_keys=True)} if noted else others


def _notes(files: Files, state: State, amendment: Amendment) -> dict[str, str]:
    text, where = files.get(PROPERTIES), join(state.location, PROPERTIES)
    own = {} if text is None else fields.texts({"own": fields.parse(text, where)}, "own", where)
    written = {**own, **{name: value for name, value in amendment.properties.items() if is_note(name)}}
    return {name: value for name, value in written.items() if name not in amendment.properties_gone}


def _without_tag(files: Mapping[str, str], state: State, name: str) -> dict[str, str]:
    """Returns the files without a tag. Where it alone held its snapshot, a tag of firnline's own does from now on: the
    next run takes it away, with the files that nothing else needs. Without it nobody would know of them.
    """
    after, path = dict(files), _path_of(state, name)
    text = after.pop(path, None)
    for branch in branches_of(files_in(state), state.location).values():
        version = versions_of(branch).get(state.refs[name].snapshot) if name in state.refs else None
        if text is not None and version is not None and not version.in_folder and len(version.tags) == 1:
            after[names.tag_file(branch.name, kept_tag(version, branch))] = without_end(text)
    return after


def without_end(text: str) -> str:
    """Returns a tag that stays for ever: it differs from the snapshot's own file in nothing."""
    document = json.loads(text)
    if TAG_CREATED not in document and TAG_RETAINED not in document:
        return text
    return json_of({k: v for k, v in document.items() if k not in (TAG_CREATED, TAG_RETAINED)})


def _path_of(state: State, name: str) -> str:
    """Returns the file of a tag, by the name that it has among all refs: of the main branch, unless one is named."""
    branches = branches_of(files_in(state), state.location)
    for branch in branches:
        for tag in branches[branch].tags:
            if tag_ref_name(branch, tag, set(branches)) == name:
                return names.tag_file(branch, tag)
    if name in branches or "/" in name or ":" in name:
        raise UnsupportedFormat(f"{name!r} can be no tag of a Paimon table", hint="name it otherwise")
    return names.tag_file(names.MAIN, name)


def _tag_text(state: State, ref: Ref, now_ms: int) -> str:
    if ref.kind is not RefKind.TAG:
        raise UnsupportedFormat("a branch of a Paimon table has no retention of its own", hint="nothing was changed")
    main = branches_of(files_in(state), state.location)[names.MAIN]
    version = versions_of(main).get(ref.snapshot)
    if version is None:
        raise UnsupportedFormat(f"{ref.snapshot} is not on the main branch", hint="tag it with Paimon itself")
    text = without_end(files_in(state)[held_in(version)])
    if ref.max_ref_age_ms is None or ref.max_ref_age_ms >= LONGEST_AGE_MS:
        return text
    ends_ms = version.snapshot.time_ms + ref.max_ref_age_ms
    if ends_ms <= now_ms:
        raise UsageError(f"the time of the tag {ref.name} is over already, by the store's clock", hint=_LONGER)
    return json_of({**json.loads(text), **_until(ends_ms, now_ms)})


def _until(ends_ms: int, now_ms: int) -> dict[str, Any]:
    """Returns when the tag was made and how long it stays, in Paimon's words: the local time, without a zone.

    Who reads it in a zone further east takes it for older than it is, and Paimon's writers delete it at their next
    commit. So it stays as long as if it were read in the easternmost zone; elsewhere that is some hours longer.
    """
    made = datetime.fromtimestamp(now_ms // SECOND_MS).astimezone()
    created = [made.year, made.month, made.day, made.hour, made.minute, made.second]
    east_s = EASTERNMOST_MS // SECOND_MS - (made.utcoffset() or timedelta()).total_seconds()
    return {TAG_CREATED: created, TAG_RETAINED: (ends_ms - now_ms // SECOND_MS * SECOND_MS) / SECOND_MS + east_s}
