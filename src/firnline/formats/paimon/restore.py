"""The way back from an expiry: the table with everything that was taken out, and when that cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firnline.errors import RefusedForSafety
from firnline.formats.paimon import names
from firnline.formats.paimon.differences import is_schema
from firnline.formats.paimon.edit import Edit, numbered
from firnline.formats.paimon.folder import Files
from firnline.formats.paimon.state import files_in
from firnline.formats.paimon.tags import amended
from firnline.model.snapshots import MAIN
from firnline.ports.formats import Amendment, State

_HELD = ("snapshot", "tag")
"""Files that hold a version of the table as a whole."""


def restored(
    state: State, removal: Mapping[str, Any], amendment: Amendment, now_ms: int
) -> tuple[Files, tuple[str, ...]]:
    """Returns the files with a removal put back, and the tags that were left alone because somebody made them since."""
    edit = Edit(dict(files_in(state)))
    left_alone = []
    taken, added = texts_of(removal), removal["added"]
    for path, text in taken.items():
        present = edit.files.get(path)
        known = names.named(names.split_branch(path)[1])
        if present is not None and present != text and known is not None:
            left_alone.append(known[1])
        else:
            edit.files[path] = text
    for path, text in added.items():
        if edit.files.get(path) == text:
            del edit.files[path]
    whole = set(removal.get("branches", ()))  # these come back with the hints that they had
    for kind in ("snapshot", "changelog"):
        moved = {*numbered(taken, kind), *numbered(added, kind)} - whole
        for branch in sorted(moved):
            edit.hint(branch, kind)
    return amended(edit.files, state, amendment, now_ms), tuple(left_alone)


def texts_of(removal: Mapping[str, Any]) -> dict[str, str]:
    """Returns what was taken out, by path."""
    return {each["path"]: each["text"] for each in removal.get("files", ())}


def refuse_gap(state: State, removal: Mapping[str, Any]) -> None:
    """Refuses where the range moved on meanwhile, or a number was given again: readers need an unbroken range."""
    files, taken = files_in(state), texts_of(removal)
    whole = set(removal.get("branches", ()))
    for branch in sorted(whole & {names.split_branch(path)[0] for path in files}):
        raise RefusedForSafety(
            f"a branch {branch} has been made since", hint="nothing was changed; rename or drop that one first"
        )
    for branch, numbers in numbered(taken, "snapshot").items():
        if branch not in whole:
            present = numbered(files, "snapshot").get(branch, {})
            _refuse_gap_in(branch, "snapshot", numbers, present, removal["earliest"])
    for branch, numbers in numbered(taken, "changelog").items():
        present = numbered(files, "changelog").get(branch, {})
        if branch not in whole and present:
            _refuse_gap_in(branch, "changelog", numbers, present, removal["earliest_changelog"])


def _refuse_gap_in(
    branch: str, kind: str, numbers: Mapping[int, str], present: Mapping[int, str], earliest: Mapping[str, int]
) -> None:
    if not present:
        raise RefusedForSafety(f"the branch {branch or MAIN} has no {kind}s any more", hint="nothing was changed")
    for number, text in numbers.items():
        if present.get(number, text) != text:
            raise RefusedForSafety(
                f"{kind} {names.snapshot_id(branch, number)} is another one by now",
                hint="the table was rolled back",
            )
    if min(present) > earliest.get(branch, max(numbers) + 1):
        raise RefusedForSafety(
            f"between {kind} {max(numbers)} and {min(present)} others have been removed since",
            hint="Paimon's readers need an unbroken range; nothing was changed",
        )


def with_all(files: Files, removal: Mapping[str, Any]) -> Files:
    """Returns the files with everything that was taken out. Where a number or a tag was given again, the earlier one
    stands beside it as a tag, and so does one of a branch that comes back in part: an undo may be refused then, and yet
    nothing of it is garbage before its time.
    """
    taken = texts_of(removal)
    branches = {names.split_branch(path)[0] for path in {**files, **taken} if is_schema(path)}
    both = dict(files)
    for path, text in taken.items():
        branch, below = names.split_branch(path)
        known = names.known(below)
        if branch in branches and both.get(path, text) == text:
            both[path] = text
        elif known is not None and known[0] in _HELD:
            home = branch if branch in branches else names.MAIN
            both[names.tag_file(home, f"{names.KEPT_TAG}{branch}{known[0]}-{known[1]}-before")] = text
    return both
