"""Pure edits of a table's metadata files: what an expiry takes out and puts in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from firnline.errors import RefusedForSafety
from firnline.formats.paimon import names
from firnline.formats.paimon.committing.present import latest_hint
from firnline.formats.paimon.editing.dropping import refuse_read
from firnline.formats.paimon.editing.tags import amended, without_end
from firnline.formats.paimon.reading.branches import Branch, branches_of, versions_of
from firnline.formats.paimon.reading.folder import Files
from firnline.formats.paimon.reading.objects import snapshot_objects
from firnline.formats.paimon.reading.ranges import Shrunk, held_in, kept_tag, shrunk
from firnline.formats.paimon.reading.side_objects import changelog_id, consumer_id
from firnline.formats.paimon.reading.state import files_in
from firnline.model.removals import Removal
from firnline.model.snapshots import SnapshotId
from firnline.ports.formats import Amendment, State


@dataclass
class Edit:
    """Files on their way from one version of the metadata to the next."""

    files: dict[str, str]
    taken: list[dict[str, str]] = field(default_factory=list)
    added: dict[str, str] = field(default_factory=dict)

    def take(self, path: str, snapshot: SnapshotId = "") -> None:
        self.taken.append({"snapshot-id": snapshot, "path": path, "text": self.files.pop(path)})

    def add(self, path: str, text: str) -> None:
        self.files[path] = self.added[path] = text

    def hint(self, branch: str, kind: str) -> None:
        """Points the hints at what is there: readers start from them.

        Java finds its own way from a hint at an older snapshot only as long as the one after that is there: one that
        was harmless before an expiry makes the table unreadable after it. Those of changelogs go with the last of
        these: a reader that looks for the first one would wait for it.
        """
        folder = names.branch_folder(branch)
        numbers = numbered(self.files, kind).get(branch, {})
        if numbers:
            self.files[f"{folder}{kind}/EARLIEST"] = str(min(numbers))
        if kind == "snapshot" and numbers and latest_hint(branch) in self.files:
            self.files[latest_hint(branch)] = str(max(numbers))
        if kind == "changelog" and numbers:
            self.files[f"{folder}{kind}/LATEST"] = str(max(numbers))
        elif kind == "changelog":
            for name in ("EARLIEST", "LATEST"):
                self.files.pop(f"{folder}{kind}/{name}", None)


def numbered(files: Mapping[str, str], kind: str) -> dict[str, dict[int, str]]:
    """Returns the files of one kind by branch and number."""
    found: dict[str, dict[int, str]] = {}
    for path, text in files.items():
        branch, below = names.split_branch(path)
        known = names.numbered(below)
        if known is not None and known[0] == kind:
            found.setdefault(branch, {})[known[1]] = text
    return found


def expired(
    state: State, snapshots: Set[SnapshotId], refs: Set[str], side_objects: Set[str], amendment: Amendment, now_ms: int
) -> tuple[Files, Removal]:
    """Returns the files without these snapshots, refs and what is beside them, and what was taken out."""
    edit = Edit(dict(files_in(state)))
    dropped: dict[str, int] = {}
    if refs:  # such an option may have been set since the plan
        refuse_read(branches_of(files_in(state), state.location), refs)
    for each in shrunk(state, snapshots, refs):
        if each.dropped:
            _refuse_moved(each.branch, snapshots)
            _drop(edit, each.branch)
            dropped[each.branch.name] = len(versions_of(each.branch))
        else:
            _shrink(edit, each, snapshots, side_objects)
            _take_beside(edit, each.branch, side_objects)
    payload = {
        "files": edit.taken,
        "added": edit.added,
        "earliest": _earliest(edit.files, "snapshot"),
        "earliest_changelog": _earliest(edit.files, "changelog"),
        "branches": dropped,
    }
    gone = tuple(each for each in snapshot_objects(state) if str(each["snapshot-id"]) in snapshots)
    named = {name: state.refs[name].snapshot for name in sorted(refs) if name in state.refs}
    return amended(edit.files, state, amendment, now_ms), Removal(gone, named, payload)


def _earliest(files: Files, kind: str) -> dict[str, int]:
    return {branch: min(numbers) for branch, numbers in numbered(files, kind).items()}


def _shrink(edit: Edit, each: Shrunk, expired_ids: Set[SnapshotId], side_objects: Set[str]) -> None:
    branch = each.branch
    for version in each.untagged(expired_ids):
        edit.add(names.tag_file(branch.name, kept_tag(version, branch)), without_end(edit.files[held_in(version)]))
    for version in each.leaving:
        path = names.snapshot_file(branch.name, version.snapshot.number)
        outlives = names.changelog_file(branch.name, version.snapshot.number)
        lives_on = branch.decoupled and changelog_id(branch.name, version.snapshot.number) not in side_objects
        if lives_on and outlives not in edit.files:
            edit.add(outlives, edit.files[path])
        edit.take(path, version.id)
    for path, snapshot in _tag_files(branch):
        if names.split_branch(path)[1].removeprefix("tag/tag-") in each.tags_gone:
            edit.take(path, snapshot)
    if each.leaving:
        edit.hint(branch.name, "snapshot")
        edit.hint(branch.name, "changelog")


def _take_beside(edit: Edit, branch: Branch, side_objects: Set[str]) -> None:
    """Takes the changelogs and consumers that go. Hints are rewritten only where something went."""
    gone = [number for number in branch.changelogs if changelog_id(branch.name, number) in side_objects]
    for number in gone:
        edit.take(names.changelog_file(branch.name, number))
    if gone:
        edit.hint(branch.name, "changelog")
    for name in branch.consumers:
        if consumer_id(branch.name, name) in side_objects:
            edit.take(names.consumer_file(branch.name, name))


def _tag_files(branch: Branch) -> Iterator[tuple[str, SnapshotId]]:
    for version in versions_of(branch).values():
        yield from ((names.tag_file(branch.name, tag.name), version.id) for tag in version.tags)


def _drop(edit: Edit, branch: Branch) -> None:
    """Takes every file of a branch, schemas and hints too."""
    versions = versions_of(branch).values()
    owners = {held_in(version): version.id for version in versions if version.in_folder} | dict(_tag_files(branch))
    for path in sorted(edit.files):
        if names.split_branch(path)[0] == branch.name:
            edit.take(path, owners.get(path, ""))


def _refuse_moved(branch: Branch, snapshots: Set[SnapshotId]) -> None:
    """Raises RefusedForSafety if a branch has more by now than was planned: nobody has said that this may go."""
    more = [each for each in versions_of(branch) if each not in snapshots]
    if more:
        raise RefusedForSafety(
            f"the branch {branch.name} moved on since the plan: {', '.join(more[:5])} came",
            hint="nothing was changed; plan again, if the branch is still to go",
        )
