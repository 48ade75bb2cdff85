"""Paimon's snapshots as firnline counts them: one for each version of the table, however many files hold it.

A version may lie in the snapshot folder, in tags, or in both. After a rollback a number can be given again: then a tag
of the earlier one is a version of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from firnline.formats.paimon import names
from firnline.formats.paimon.branches import Branch, Tag
from firnline.formats.paimon.snapshot import PaimonSnapshot
from firnline.model.snapshots import SnapshotId


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a branch: `in_folder` where its snapshot file is there, and the tags that hold it. `again`: its
    number was given again, and is another version's.
    """

    id: SnapshotId
    branch: str
    snapshot: PaimonSnapshot
    in_folder: bool
    tags: tuple[Tag, ...]
    again: bool = False


def versions_of(branch: Branch) -> Mapping[SnapshotId, Version]:
    """Returns the branch's versions by id, oldest number first."""
    found = sorted(_versions(branch), key=lambda each: (each.snapshot.number, each.in_folder, each.id))
    return {each.id: each for each in found}


def _versions(branch: Branch) -> Iterator[Version]:
    holding: dict[tuple[int, tuple[str, str]], list[Tag]] = {}
    for tag in branch.tags.values():
        holding.setdefault((tag.snapshot.number, tag.snapshot.content), []).append(tag)
    for number, snapshot in branch.snapshots.items():
        tags = holding.pop((number, snapshot.content), [])
        yield Version(names.snapshot_id(branch.name, number), branch.name, snapshot, True, tuple(tags))
    taken = set(branch.snapshots)
    for (number, _), tags in sorted(holding.items()):
        again = number in taken
        taken.add(number)
        known_as = names.snapshot_id(branch.name, number, tags[0].name if again else "")
        yield Version(known_as, branch.name, tags[0].snapshot, False, tuple(tags), again)
