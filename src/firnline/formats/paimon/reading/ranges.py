"""What leaves the snapshot folder when some snapshots expire: Paimon's readers need an unbroken range of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from hashlib import sha256

from firnline.formats.paimon import names
from firnline.formats.paimon.reading.branches import Branch, SnapshotVersion, branches_of, versions_of
from firnline.formats.paimon.reading.schema import changelog_range
from firnline.formats.paimon.reading.side_objects import (
    CHANGELOG,
    SideFate,
    changelog_fates,
    consumer_fates,
    consumers_of,
    dropped_fates,
)
from firnline.formats.paimon.reading.state import files_in, modified_in, tag_ref_name
from firnline.model.snapshots import SnapshotId, changes_of
from firnline.ports.abilities import Consequences
from firnline.ports.formats import State


@dataclass(frozen=True, slots=True)
class Shrunk:
    """One branch after an expiry: which versions leave the folder, and which tags go. `dropped`: nothing is left."""

    branch: Branch
    leaving: tuple[SnapshotVersion, ...]
    tags_gone: frozenset[str]
    dropped: bool

    def untagged(self, expired: Set[SnapshotId]) -> Iterator[SnapshotVersion]:
        """Yields the versions that stay although they leave the folder, and that no tag would hold."""
        leaving = {each.id for each in self.leaving}
        for version in versions_of(self.branch).values():
            stays = version.id not in expired and (not version.in_folder or version.id in leaving)
            if stays and all(tag.name in self.tags_gone for tag in version.tags):
                yield version

    def outliving(self) -> dict[int, int]:
        """Returns the changelogs that the branch has then, with their times, as if none of them went."""
        times = {number: each.time_ms for number, each in self.branch.changelogs.items()}
        if self.branch.decoupled:
            times |= {each.snapshot.number: each.snapshot.time_ms for each in self.leaving}
        return times


def shrunk(state: State, expired: Set[SnapshotId], refs: Set[str]) -> Iterator[Shrunk]:
    """Yields each branch as it would be without these snapshots and refs."""
    branches = branches_of(files_in(state), state.location)
    for branch in branches.values():
        dropped = bool(branch.name) and branch.name in refs
        versions = [each for each in versions_of(branch).values() if each.in_folder]
        first = first_of_range(versions, expired)
        leaving = tuple(each for each in versions if dropped or each.snapshot.number < first)
        gone = branch.tags if dropped else _tags_gone(branch, set(branches), expired, refs)
        yield Shrunk(branch, leaving, frozenset(gone), dropped)


def first_of_range(versions: list[SnapshotVersion], expired: Set[SnapshotId]) -> int:
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


def consequences_of(state: State, expired: Set[SnapshotId], refs: Set[str], now_ms: int | None) -> Consequences:
    """Returns who needs nothing any more, which snapshots are left as a tag alone, and what goes beside them."""
    released: set[str] = set(expired)
    tagged: dict[SnapshotId, str] = {}
    fates: list[SideFate] = []
    for each in shrunk(state, expired, refs):
        own = list(_fates(each, state, now_ms))
        released |= _changes_released(each, own)
        fates += own
        if not each.dropped:
            tagged |= {version.id: kept_tag(version, each.branch) for version in each.untagged(expired)}
    going = tuple(fate.side_object for fate in fates if fate.goes)
    return Consequences(frozenset(released), tagged, going, tuple(fate.side_object for fate in fates if not fate.goes))


def _fates(each: Shrunk, state: State, now_ms: int | None) -> Iterator[SideFate]:
    if each.dropped:
        yield from dropped_fates(each.branch, iter(each.branch.changelogs))
    elif now_ms is not None:
        consumers = consumers_of(each.branch, modified_in(state))
        rule = changelog_range(each.branch.schema, state.properties)
        yield from changelog_fates(each.branch, each.outliving(), consumers, rule, now_ms)
        yield from consumer_fates(each.branch, consumers, now_ms)


def _changes_released(each: Shrunk, fates: list[SideFate]) -> set[str]:
    """Returns the owners of changes that nobody can read then: of what is neither in the folder nor a changelog."""
    leaving = {version.id for version in each.leaving}
    staying = {names.snapshot_id(each.branch.name, number) for number in each.branch.snapshots} - leaving
    gone = {fate.side_object.name for fate in fates if fate.goes and fate.side_object.kind == CHANGELOG}
    kept = {names.snapshot_id(each.branch.name, number) for number in each.branch.changelogs} - gone
    with_snapshots = leaving if each.dropped or not each.branch.decoupled else set()
    return {changes_of(snapshot) for snapshot in (gone | with_snapshots) - staying - kept}


def kept_tag(version: SnapshotVersion, branch: Branch) -> str:
    """Returns the tag of firnline's that holds a version; by another name where the number was given again, and the tag
    of that name holds the earlier one.
    """
    name = names.KEPT_TAG + version.id.rpartition(":")[2]
    taken = branch.tags.get(name)
    if taken is None or taken.snapshot.content == version.snapshot.content:
        return name
    return f"{name}-{sha256(version.snapshot.delta.name.encode()).hexdigest()[:12]}"


def held_in(version: SnapshotVersion) -> str:
    """Returns the path of a file that holds the version."""
    if version.in_folder:
        return names.snapshot_file(version.branch, version.snapshot.number)
    return names.tag_file(version.branch, version.tags[0].name)
