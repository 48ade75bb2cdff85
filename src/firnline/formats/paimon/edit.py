"""Pure edits of a table's metadata files: what an expiry takes out and puts in, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from firnline.errors import RefusedForSafety
from firnline.formats.paimon import names
from firnline.formats.paimon.folder import Files
from firnline.formats.paimon.objects import snapshot_objects
from firnline.formats.paimon.shrink import Shrunk, held_in, kept_tag, shrunk
from firnline.formats.paimon.state import files_in
from firnline.formats.paimon.tags import amended, without_end
from firnline.formats.paimon.versions import versions_of
from firnline.model.snapshots import SnapshotId
from firnline.ports.formats import Amendment, State


@dataclass
class Edit:
    """Files on their way from one version of the metadata to the next."""

    files: dict[str, str]
    taken: list[dict[str, str]] = field(default_factory=list)
    added: dict[str, str] = field(default_factory=dict)

    def take(self, path: str, snapshot: SnapshotId) -> None:
        self.taken.append({"snapshot-id": snapshot, "path": path, "text": self.files.pop(path)})

    def add(self, path: str, text: str) -> None:
        self.files[path] = self.added[path] = text


def expired(
    state: State, snapshots: Set[SnapshotId], refs: Set[str], amendment: Amendment, now_ms: int
) -> tuple[Files, Mapping[str, Any]]:
    """Returns the files without these snapshots and refs, and what was taken out, as JSON."""
    edit = Edit(dict(files_in(state)))
    for each in shrunk(state, snapshots, refs):
        _shrink(edit, each, snapshots)
    gone = (state.refs[name] for name in sorted(refs))
    removal = {
        "snapshots": [each for each in snapshot_objects(state) if str(each["snapshot-id"]) in snapshots],
        "refs": {ref.name: {"snapshot-id": ref.snapshot, "type": ref.kind.value} for ref in gone},
        "files": edit.taken,
        "added": edit.added,
        "earliest": {branch: min(numbers) for branch, numbers in _numbers(edit.files).items()},
    }
    return amended(edit.files, state, amendment, now_ms), removal


def _shrink(edit: Edit, each: Shrunk, expired_ids: Set[SnapshotId]) -> None:
    branch = each.branch
    for version in each.untagged(expired_ids):
        edit.add(names.tag_file(branch.name, kept_tag(version)), without_end(edit.files[held_in(version)]))
    for version in each.leaving:
        path = names.snapshot_file(branch.name, version.snapshot.number)
        if branch.decoupled:
            edit.add(names.changelog_file(branch.name, version.snapshot.number), edit.files[path])
        edit.take(path, version.id)
    for version in versions_of(branch).values():
        for tag in version.tags:
            if tag.name in each.tags_gone:
                edit.take(names.tag_file(branch.name, tag.name), version.id)
    if each.leaving:
        _hint(edit, branch.name)


def _hint(edit: Edit, branch: str) -> None:
    """Points the hints at what is there: readers start from them, and find the way themselves where they are wrong."""
    folder = names.branch_folder(branch)
    for kind in ("snapshot", "changelog"):
        below = (names.numbered(path.removeprefix(folder)) for path in edit.files if path.startswith(folder))
        numbers = [each[1] for each in below if each is not None and each[0] == kind]
        if numbers:
            edit.files[f"{folder}{kind}/EARLIEST"] = str(min(numbers))
        if numbers and kind == "changelog":
            edit.files[f"{folder}{kind}/LATEST"] = str(max(numbers))


def restored(
    state: State, removal: Mapping[str, Any], amendment: Amendment, now_ms: int
) -> tuple[Files, tuple[str, ...]]:
    """Returns the files with a removal put back, and the tags that were left alone because somebody made them since."""
    edit = Edit(dict(files_in(state)))
    left_alone = []
    taken = texts_of(removal)
    for path, text in taken.items():
        present = edit.files.get(path)
        known = names.named(names.split_branch(path)[1])
        if present is not None and present != text and known is not None:
            left_alone.append(known[1])
        else:
            edit.files[path] = text
    for path, text in removal["added"].items():
        if edit.files.get(path) == text:
            del edit.files[path]
    for branch in sorted({names.split_branch(path)[0] for path in taken}):
        _hint(edit, branch)
    return amended(edit.files, state, amendment, now_ms), tuple(left_alone)


def texts_of(removal: Mapping[str, Any]) -> dict[str, str]:
    """Returns what was taken out, by path."""
    return {each["path"]: each["text"] for each in removal.get("files", ())}


def refuse_gap(state: State, removal: Mapping[str, Any]) -> None:
    """Refuses where the range moved on meanwhile, or a number was given again: readers need an unbroken range."""
    files = files_in(state)
    for branch, numbers in _numbers(texts_of(removal)).items():
        present = _numbers(files).get(branch, {})
        if not present:
            raise RefusedForSafety(
                f"the branch {branch or 'main'} has no snapshots any more", hint="nothing was changed"
            )
        for number, text in numbers.items():
            if present.get(number, text) != text:
                raise RefusedForSafety(
                    f"snapshot {names.snapshot_id(branch, number)} is another one by now",
                    hint="the table was rolled back",
                )
        if min(present) > removal["earliest"][branch]:
            raise RefusedForSafety(
                f"between snapshot {max(numbers)} and {min(present)} others have been removed since",
                hint="Paimon's readers need an unbroken range; nothing was changed",
            )


def _numbers(files: Mapping[str, str]) -> dict[str, dict[int, str]]:
    found: dict[str, dict[int, str]] = {}
    for path, text in files.items():
        branch, below = names.split_branch(path)
        known = names.numbered(below)
        if known is not None and known[0] == "snapshot":
            found.setdefault(branch, {})[known[1]] = text
    return found


def with_all(files: Files, removal: Mapping[str, Any]) -> Files:
    """Returns the files with everything that was taken out. Where a number or a tag was given again, the earlier one
    stands beside it as a tag: an undo may be refused then, and yet nothing of it is garbage before its time.
    """
    both = dict(files)
    for path, text in texts_of(removal).items():
        branch, below = names.split_branch(path)
        known = names.known(below)
        if both.get(path, text) == text:
            both[path] = text
        elif known is not None:
            both[names.tag_file(branch, f"{names.KEPT_TAG}{known[0]}-{known[1]}-before")] = text
    return both
