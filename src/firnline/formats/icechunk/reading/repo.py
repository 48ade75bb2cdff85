"""The object `repo` of version 2: all refs and the whole history in one object, the only one that ever changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Final

import numpy as np

from firnline.formats.icechunk.ids import WIDTH, names_of
from firnline.formats.icechunk.reading.damage import CorruptIcechunk, UnsupportedIcechunk
from firnline.formats.icechunk.reading.envelope import ObjectType, opened
from firnline.formats.icechunk.reading.flat import Field, FlatBuffer, FlatTables, Numbers, TableLayout
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.model.snapshots import MAIN

_REPO: Final = TableLayout(
    "Repo",
    (
        Field("spec_version", 1),
        Field("tags", required=True),
        Field("branches", required=True),
        Field("deleted_tags", required=True),
        Field("snapshots", required=True),
        Field("status", required=True),
        Field("metadata"),
        Field("latest_updates", required=True),
        Field("repo_before_updates"),
        Field("config"),
        Field("enabled_feature_flags"),
        Field("disabled_feature_flags"),
        Field("extra", reserved=True),
    ),
)
_LISTS: Final = {
    **dict.fromkeys(("tags", "branches", "deleted_tags", "snapshots", "metadata", "latest_updates"), 4),
    **dict.fromkeys(("enabled_feature_flags", "disabled_feature_flags"), 2),
    "config": 1,
}
"""The lists of a `Repo`, and how many bytes an entry has."""
_REF: Final = TableLayout("Ref", (Field("name", required=True), Field("snapshot_index")))
_INFO: Final = TableLayout(
    "SnapshotInfo",
    (
        Field("id", WIDTH, required=True),
        Field("parent_offset"),
        Field("flushed_at", 8),
        Field("message", required=True),
        Field("metadata"),
        Field("pruned_ancestor_tx_logs"),
    ),
)
_STATUS: Final = TableLayout(
    "RepoStatus", (Field("availability", 1), Field("set_at", 8), Field("limited_availability_reason"))
)
_UPDATE: Final = TableLayout(
    "Update",
    (
        Field("update_type_type", 1, required=True),
        Field("update_type", required=True),
        Field("updated_at", 8),
        Field("backup_path"),
    ),
)


_METADATA: Final = TableLayout("MetadataItem", (Field("name", required=True), Field("value", required=True)))
_NAME, _BRANCH = Field("name", required=True), Field("branch", required=True)
_BEFORE, _NEW = Field("previous_snap_id", WIDTH, required=True), Field("new_snap_id", WIDTH, required=True)
_UPDATES: Final = tuple(
    TableLayout(name, fields)
    for name, fields in (
        ("RepoInitializedUpdate", ()),
        ("RepoMigratedUpdate", (Field("from_version", 1), Field("to_version", 1))),
        ("ConfigChangedUpdate", ()),
        ("MetadataChangedUpdate", ()),
        ("TagCreatedUpdate", (_NAME,)),
        ("TagDeletedUpdate", (_NAME, _BEFORE)),
        ("BranchCreatedUpdate", (_NAME,)),
        ("BranchDeletedUpdate", (_NAME, _BEFORE)),
        ("BranchResetUpdate", (_NAME, _BEFORE)),
        ("NewCommitUpdate", (_BRANCH, _NEW)),
        ("CommitAmendedUpdate", (_BRANCH, _BEFORE, _NEW)),
        ("NewDetachedSnapshotUpdate", (_NEW,)),
        ("GCRanUpdate", ()),
        ("ExpirationRanUpdate", ()),
        ("FeatureFlagChangedUpdate", (Field("id", 2), Field("new_value", 1), Field("is_set", 1))),
        ("RepoStatusChangedUpdate", (Field("status"),)),
    )
)
"""What can have changed a `repo`, by its number, which counts from 1."""


class Availability(IntEnum):
    ONLINE = 0
    READ_ONLY = 1
    OFFLINE = 2


@dataclass(frozen=True, slots=True)
class RepoUpdate:
    """What changed `repo`, by the number of its kind, and where the object lies that was there before."""

    kind: int
    at_us: int
    backup: str


@dataclass(frozen=True, slots=True)
class RepoObject:
    """All that `repo` says. Branches and tags are apart: one may have the name of the other.

    `earlier` is an older `repo` with the updates that came before these; "" where there are none.
    """

    branches: Mapping[str, str]
    tags: Mapping[str, str]
    deleted_tags: frozenset[str]
    snapshots: Mapping[str, HistorySnapshot]
    availability: Availability
    limited_because: str
    enabled_flags: tuple[int, ...]
    disabled_flags: tuple[int, ...]
    updates: tuple[RepoUpdate, ...]
    earlier: str


def read_repo(data: bytes) -> RepoObject:
    """Returns what the object says. Raises CorruptIcechunk where its parts contradict each other, or where some of it
    belongs to nothing: no other object says how many tags there are.
    """
    buffer = FlatBuffer(opened(data, ObjectType.REPO).body, accounted=True)
    root = buffer.root(_REPO)
    if (spec := int(root.numbers("spec_version", "<u1")[0])) != 2:
        raise UnsupportedIcechunk(f"it says that the repository is of version {spec}")
    _refuse_same_lists(root)
    infos = root.listed("snapshots", _INFO)
    ids = names_of(infos.rows("id", WIDTH))
    _refuse_unsorted([name.encode() for name in ids], "snapshots")
    branches, tags = _refs(root, "branches", ids), _refs(root, "tags", ids)
    if MAIN not in branches:
        raise CorruptIcechunk(f"it has no branch {MAIN}")
    deleted = root.lists_of_texts("deleted_tags")
    _refuse_unsorted([text.encode() for text in deleted], "deleted tags")
    status = root.named("status", _STATUS)
    found = RepoObject(
        branches=branches,
        tags=tags,
        deleted_tags=frozenset(deleted),
        snapshots=_snapshots(buffer, infos, ids),
        availability=_availability(status),
        limited_because=status.texts("limited_availability_reason")[0],
        enabled_flags=_flags(buffer, root, "enabled_feature_flags"),
        disabled_flags=_flags(buffer, root, "disabled_feature_flags"),
        updates=_updates(root),
        earlier=root.texts("repo_before_updates")[0],
    )
    _pass_over(root, infos)
    buffer.refuse_unread()
    return found


def _refuse_same_lists(root: FlatTables) -> None:
    """Raises where two lists share bytes. An empty one is four zeros, which nobody misses once its distance leads to
    another list: then branches would pass for tags that were deleted.
    """
    spans = [(root.vectors(field, width), width) for field, width in _LISTS.items() if root.has(field).all()]
    taken = sorted((int(each.starts[0]) - 4, int(each.starts[0] + each.counts[0] * width)) for each, width in spans)
    if any(end > start for (_, end), (start, _) in pairwise(taken)):
        raise CorruptIcechunk("two of its lists lie in the same place")


def _pass_over(root: FlatTables, infos: FlatTables) -> None:
    """Reads what nobody here asks for, so that all is accounted for."""
    root.vectors("config", 1)
    for tables in (root, infos):
        items = tables.listed("metadata", _METADATA)
        items.texts("name")
        items.vectors("value", 1)


def _refuse_unsorted(names: list[bytes], what: str) -> None:
    """Raises unless each comes after the one before: readers look a name up by halves, so that one in another place is
    found by some and not by others.
    """
    if any(one >= other for one, other in pairwise(names)):
        raise CorruptIcechunk(f"its {what} are not in order, or one is there twice")


def _refs(root: FlatTables, field: str, ids: list[str]) -> dict[str, str]:
    refs = root.listed(field, _REF)
    names, numbers = refs.texts("name"), refs.numbers("snapshot_index", "<u4").tolist()
    _refuse_unsorted([name.encode() for name in names], field)
    if any(number >= len(ids) for number in numbers):
        raise CorruptIcechunk(f"one of its {field} leads to no snapshot")
    return {name: ids[number] for name, number in zip(names, numbers, strict=True)}


def _snapshots(buffer: FlatBuffer, infos: FlatTables, ids: list[str]) -> dict[str, HistorySnapshot]:
    parents = infos.numbers("parent_offset", "<i4")
    _refuse_circles(parents)
    pruned = infos.vectors("pruned_ancestor_tx_logs", WIDTH, 1)
    logs, ends = names_of(buffer.rows(pruned.places(WIDTH), WIDTH)), np.cumsum(pruned.counts)
    spans = zip((ends - pruned.counts).tolist(), ends.tolist(), strict=True)
    columns = zip(
        ids,
        (ids[parent] if parent >= 0 else None for parent in parents.tolist()),
        infos.numbers("flushed_at", "<u8").tolist(),
        infos.texts("message"),
        (tuple(logs[start:end]) for start, end in spans),
        strict=True,
    )
    return {each[0]: HistorySnapshot(*each) for each in columns}


def _refuse_circles(parents: Numbers) -> None:
    """Raises unless every snapshot comes from a first one: each step looks twice as far back as the one before."""
    if np.any(parents < -1) or np.any(parents >= len(parents)):
        raise CorruptIcechunk("a parent is no snapshot of it")
    back = np.append(parents, -1)
    for _ in range(len(parents).bit_length()):
        back = back[back]
    if np.any(back != -1):
        raise CorruptIcechunk("a snapshot is its own ancestor")


def _availability(status: FlatTables) -> Availability:
    number = int(status.numbers("availability", "<u1")[0])
    if number not in list(Availability):
        raise UnsupportedIcechunk(f"its availability is {number}, which is not known")
    return Availability(number)


def _flags(buffer: FlatBuffer, root: FlatTables, field: str) -> tuple[int, ...]:
    return tuple(buffer.numbers(root.vectors(field, 2).places(2), "<u2").tolist())


def _updates(root: FlatTables) -> tuple[RepoUpdate, ...]:
    updates = root.listed("latest_updates", _UPDATE)
    kinds = updates.numbers("update_type_type", "<u1")
    for kind in sorted(set(kinds.tolist())):
        _pass_over_updates(updates.picked(np.asarray(kinds == kind)), kind)
    columns = (
        kinds.tolist(),
        updates.numbers("updated_at", "<u8").tolist(),
        updates.texts("backup_path"),
    )
    return tuple(map(RepoUpdate, *columns))


def _pass_over_updates(updates: FlatTables, kind: int) -> None:
    """Reads what updates of one kind say. Raises UnsupportedIcechunk where nobody knows what that is."""
    if not 1 <= kind <= len(_UPDATES):
        raise UnsupportedIcechunk(f"it was changed by an update of kind {kind}, which is not known")
    layout = _UPDATES[kind - 1]
    found = updates.named("update_type", layout)
    for field in layout.fields:
        if field in (_NAME, _BRANCH):
            found.texts(field.name)
    if "status" in layout.numbers:
        found.picked(found.has("status")).named("status", _STATUS).texts("limited_availability_reason")
