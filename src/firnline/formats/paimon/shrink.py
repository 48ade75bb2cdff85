"""What leaves the snapshot folder when some snapshots expire: Paimon's readers need an unbroken range of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from firnline.formats.paimon import names
from firnline.formats.paimon.branches import Branch, branches_of
from firnline.formats.paimon.state import files_in, tag_ref_name
from firnline.formats.paimon.versions import Version, versions_of
from firnline.model.snapshots import SnapshotId, changes_of
from firnline.ports.formats import Consequences, State


@dataclass(frozen=True, slots=True)
class Shrunk:
    """One branch after an expiry: where its range begins then, and which versions leave the folder."""

    branch: Branch
    first: int
    leaving: tuple[Version, ...]
    tags_gone: frozenset[str]

    def untagged(self, expired: Set[SnapshotId]) -> Iterator[Version]:
        """Yields the versions that stay although they leave the folder, and that no tag would hold."""
        for version in versions_of(self.branch).values():
            stays = version.id not in expired and (not version.in_folder or version in self.leaving)
            if stays and all(tag.name in self.tags_gone for tag in version.tags):
                yield version


def shrunk(state: State, expired: Set[SnapshotId], refs: Set[str]) -> Iterator[Shrunk]:
    """Yields each branch as it would be without these snapshots and refs."""
    branches = branches_of(files_in(state), state.location)
    for branch in branches.values():
        versions = [each for each in versions_of(branch).values() if each.in_folder]
        first = first_of_range(versions, expired)
        leaving = tuple(each for each in versions if each.snapshot.number < first)
        yield Shrunk(branch, first, leaving, frozenset(_tags_gone(branch, set(branches), expired, refs)))


def first_of_range(versions: list[Version], expired: Set[SnapshotId]) -> int:
    """Returns the lowest number such that nothing from there on expires."""
    first = 0
    for version in versions:  # by number
        if version.id in expired:
            first = version.snapshot.number + 1
    return first


def _tags_gone(branch: Branch, branches: set[str], expired: Set[SnapshotId], refs: Set[str]) -> Iterator[str]:
    """Yields the tags that go: those that were named, and firnline's own on what expires."""
    for version in versions_of(branch).values():
        for tag in version.tags:
            ours = tag.is_ours and version.id in expired
            if ours or (not tag.is_ours and tag_ref_name(branch.name, tag.name, branches) in refs):
                yield tag.name


def consequences_of(state: State, expired: Set[SnapshotId], refs: Set[str]) -> Consequences:
    """Returns who needs nothing any more, and which snapshots are left as a tag alone."""
    released: set[str] = set(expired)
    tagged: dict[SnapshotId, str] = {}
    for each in shrunk(state, expired, refs):
        if not each.branch.decoupled:
            released |= {changes_of(version.id) for version in each.leaving}
        tagged |= {version.id: kept_tag(version) for version in each.untagged(expired)}
    return Consequences(frozenset(released), tagged)


def kept_tag(version: Version) -> str:
    return names.KEPT_TAG + version.id.rpartition(":")[2]


def held_in(version: Version) -> str:
    """Returns the path of a file that holds the version."""
    if version.in_folder:
        return names.snapshot_file(version.branch, version.snapshot.number)
    return names.tag_file(version.branch, version.tags[0].name)
