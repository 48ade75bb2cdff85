"""The way back from an expiry: the table with everything that was taken out, and when that cannot be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from firnline.errors import RefusedForSafety
from firnline.foreign import json_of
from firnline.formats.paimon import names
from firnline.formats.paimon.committing.differences import is_schema
from firnline.formats.paimon.editing.expiry import Edit, numbered
from firnline.formats.paimon.editing.tags import amended
from firnline.formats.paimon.reading.folder import Files
from firnline.formats.paimon.reading.schema import latest_schema
from firnline.formats.paimon.reading.state import files_in, tag_ref_name
from firnline.ports.formats import Amendment, State

_HELD = ("snapshot", "tag")
"""Files that hold a version of the table as a whole."""


def restored(
    state: State, removal: Mapping[str, Any], amendment: Amendment, now_ms: int
) -> tuple[Files, tuple[str, ...]]:
    """Returns the files with a removal put back, and what was left alone: tags that were made since, and what
    belongs to a branch that was dropped since, and perhaps made again: without its schema nobody could read it,
    nor the table.
    """
    edit = Edit(dict(files_in(state)))
    left_alone = []
    taken, added, whole = texts_of(removal), removal["added"], set(removal.get("branches", ()))
    homes, known_files = whole | _branches(files_in(state)), {**edit.files, **taken}
    for path, text in taken.items():
        present = edit.files.get(path)
        branch, below = names.split_branch(path)
        known = names.named(below)
        if branch not in homes or not _has_schema(path, text, known_files):
            left_alone.append(tag_ref_name(branch, known[1], homes) if known else path)
        elif present is not None and present != text and known is not None:
            left_alone.append(known[1])
        else:
            edit.files[path] = text
    for path, text in added.items():
        if edit.files.get(path) == text:
            del edit.files[path]
    for kind in ("snapshot", "changelog"):  # whole branches come back with the hints that they had
        moved = ({*numbered(taken, kind), *numbered(added, kind)} & homes) - whole
        for branch in sorted(moved):
            edit.hint(branch, kind)
    return amended(edit.files, state, amendment, now_ms), tuple(left_alone)


def _branches(files: Files) -> set[str]:
    return {names.split_branch(path)[0] for path in files if is_schema(path)}


def texts_of(removal: Mapping[str, Any]) -> dict[str, str]:
    """Returns what was taken out, by path. Raises RefusedForSafety where a path is none of metadata: what comes back is
    written, and a record proves nothing by itself.
    """
    taken = {str(each["path"]): each["text"] for each in removal.get("files", ())}
    strange = next((path for path in (*taken, *removal.get("added", ())) if not names.is_metadata(path)), None)
    if strange is not None:
        raise RefusedForSafety(
            f"a record says that {strange} was taken out of the table's metadata, which has no such file",
            hint="nothing was changed; the record was edited, or is forged",
        )
    return taken


def refuse_gap(state: State, removal: Mapping[str, Any]) -> None:
    """Raises RefusedForSafety if the range moved on meanwhile, or a number was given again: readers need an unbroken
    range.

    A branch without any snapshot left gets all back: a rollback to one that was just going took the others away.
    """
    files, taken = files_in(state), texts_of(removal)
    whole = set(removal.get("branches", ()))
    for branch in sorted(whole & {names.split_branch(path)[0] for path in files}):
        raise RefusedForSafety(
            f"a branch {branch} has been made since", hint="nothing was changed; rename or drop that one first"
        )
    for kind, earliest in (("snapshot", "earliest"), ("changelog", "earliest_changelog")):
        for branch, numbers in numbered(taken, kind).items():
            present = numbered(files, kind).get(branch, {})
            if branch not in whole and present:
                _refuse_gap_in(branch, kind, numbers, present, removal[earliest])
                _refuse_hole(branch, kind, numbers, {**files, **taken})


def _refuse_gap_in(
    branch: str, kind: str, numbers: Mapping[int, str], present: Mapping[int, str], earliest: Mapping[str, int]
) -> None:
    for number, text in numbers.items():
        if present.get(number, text) != text:
            raise RefusedForSafety(
                f"{kind} {names.snapshot_id(branch, number)} is another one by now",
                hint="the table was rolled back",
            )
    if max(numbers) > max(present):
        raise RefusedForSafety(
            f"the newest {kind} is {names.snapshot_id(branch, max(present))} by now, below what would come back",
            hint="the table was rolled back; nothing was changed",
        )
    if min(present) > earliest.get(branch, max(numbers) + 1):
        raise RefusedForSafety(
            f"between {kind} {max(numbers)} and {min(present)} others have been removed since",
            hint="Paimon's readers need an unbroken range; nothing was changed",
        )


def _refuse_hole(branch: str, kind: str, numbers: Mapping[int, str], files: Files) -> None:
    """Raises RefusedForSafety if the schema of one that would come back is gone, and not of all below it: it would stay
    away.
    """
    lost: dict[int, str] = {}
    for number, text in numbers.items():
        schema = f"{names.branch_folder(branch)}schema/schema-{json.loads(text)['schemaId']}"
        if schema not in files:
            lost[number] = schema
    if lost and max(lost) > min(numbers.keys() - lost.keys(), default=max(lost)):
        raise RefusedForSafety(
            f"{kind} {names.snapshot_id(branch, max(lost))} was written with {lost[max(lost)]}, which is gone",
            hint="without it Paimon's readers would find a hole in the range; nothing was changed",
        )


def with_all(files: Files, removal: Mapping[str, Any]) -> Files:
    """Returns the files with everything that was taken out. Where a number or a tag was given again, the earlier one
    stands beside it as a tag, and so does one of a branch that comes back in part: an undo may be refused then, and yet
    nothing of it is garbage before its time.
    """
    taken = texts_of(removal)
    branches = _branches({**files, **taken})
    back: dict[str, str] = {}
    for path, text in taken.items():
        branch, below = names.split_branch(path)
        known = names.known(below)
        if branch in branches and files.get(path, text) == text:
            back[path] = text
        elif known is not None and known[0] in _HELD:
            number, home = json.loads(text)["id"], branch if branch in branches else names.MAIN
            back[names.tag_file(home, f"{names.KEPT_TAG}{number}@{quote(path, safe='')}")] = text
    both = {**files, **back}
    return {**both, **{path: _readable(path, text, both) for path, text in back.items()}}


def _has_schema(path: str, text: str, files: Files) -> bool:
    """Tells whether the schema is there that a snapshot, tag or changelog was written with; true for all else."""
    schema = _schema_of(path, text)
    return schema is None or schema in files


def _schema_of(path: str, text: str) -> str | None:
    branch, below = names.split_branch(path)
    known = names.known(below)
    if known is None or known[0] in ("schema", "consumer"):
        return None
    return f"{names.branch_folder(branch)}schema/schema-{json.loads(text)['schemaId']}"


def _readable(path: str, text: str, files: Files) -> str:
    """Returns the text, with a schema that the branch has where its own went with another branch: for who only asks
    which files it needs, every schema is as good.
    """
    if _has_schema(path, text, files):
        return text
    number = latest_schema(files, names.split_branch(path)[0], "").number
    return json_of({**json.loads(text), "schemaId": number})
