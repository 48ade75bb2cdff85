"""A list of expired snapshots as bytes, JSON as Iceberg writes its Snapshot objects; and a snapshot as a row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from firnline.errors import ObjectNotFound, UnreadableMetadata
from firnline.foreign import json_of
from firnline.model.snapshots import number_of
from firnline.ports.stores import Get

Entry = Mapping[str, Any]
"""One snapshot as it stood in the table's metadata, with whatever fields it had."""

HINT = (
    "the table and its live snapshots are not affected; restore the object, or plan with --new-history, "
    "which begins another history and leaves this one where it is"
)


def unreadable(key: str, why: object) -> UnreadableMetadata:
    return UnreadableMetadata(f"the history of expired snapshots cannot be read: {key}: {why}", hint=HINT)


def id_of(entry: Entry) -> str:
    return str(entry["snapshot-id"])


def time_of(entry: Entry) -> int:
    return int(entry["timestamp-ms"])


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=_place)


def _place(entry: Entry) -> tuple[int, int, str]:
    named = entry["snapshot-id"]
    return (entry["timestamp-ms"], *((number_of(named) or 0, named) if isinstance(named, str) else (named, "")))


def read_list(store: Get, key: str) -> list[Entry]:
    return parse_list(read_object(store, key), key)


def read_object(store: Get, key: str) -> bytes:
    """Returns the object. One that is not there is damage here: the table says that it is."""
    try:
        return store.get(key)
    except ObjectNotFound:
        raise unreadable(key, "it is missing") from None


def parse_list(data: bytes, key: str) -> list[Entry]:
    """Returns the snapshots. Raises UnreadableMetadata for anything but a whole list of snapshots, each there once."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError) as damage:
        raise unreadable(key, damage) from None
    if not isinstance(said, list):
        raise unreadable(key, "it is not a JSON list")
    seen: set[int | str] = set()
    for number, each in enumerate(said):
        if not isinstance(each, dict) or not _is_id(each.get("snapshot-id")) or not _is_whole(each.get("timestamp-ms")):
            raise unreadable(key, f"entry {number} is not a snapshot")
        if each["snapshot-id"] in seen:
            raise unreadable(key, f"snapshot {each['snapshot-id']} is in it twice")
        seen.add(each["snapshot-id"])
    return said


def _is_id(value: object) -> bool:
    """Tells whether it is a number, or names a snapshot that counts within a branch: Paimon has such."""
    return _is_whole(value) or (isinstance(value, str) and not value.isdigit() and number_of(value) is not None)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def text_of(entry: Entry) -> str:
    """Returns the snapshot as JSON, readable; half of a pair of surrogates, which is no letter, stays escaped."""
    return json_of(entry, separators=(",", ":"))


def bytes_of(texts: Iterable[str]) -> bytes:
    """Returns the list, a snapshot on each line: people and line tools can look at it as it is."""
    return ("[" + ",\n".join(texts) + "]\n").encode()


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    committed_at_ms: int
    snapshot_id: str
    parent_id: str | None
    operation: str | None
    manifest_list: str | None
    summary: Mapping[str, str]
    expired: bool


def rows_of(entries: Iterable[Entry], *, expired: bool) -> Iterator[SnapshotRow]:
    return (row_of(entry, expired=expired) for entry in entries)


def row_of(entry: Entry, *, expired: bool) -> SnapshotRow:
    """Returns the row. As in Iceberg's table, the operation stands beside the summary and not in it."""
    parent, manifest_list = parent_of(entry), entry.get("manifest-list")
    summary = dict(summary_of(entry))
    operation = summary.pop("operation", None)
    return SnapshotRow(
        committed_at_ms=time_of(entry),
        snapshot_id=id_of(entry),
        parent_id=None if parent is None else str(parent),
        operation=operation,
        manifest_list=None if manifest_list is None else str(manifest_list),
        summary=summary,
        expired=expired,
    )


def parent_of(entry: Entry) -> int | str | None:
    """Returns the parent's id; some writers say -1 where there is none."""
    parent = entry.get("parent-snapshot-id")
    return None if parent in (None, -1) else parent


def summary_of(entry: Entry) -> Mapping[str, str]:
    """Returns the summary as text for text, the operation in it; empty where the snapshot has none."""
    said = entry.get("summary")
    if not isinstance(said, dict):
        return {}
    return said if all(type(value) is str for value in said.values()) else {n: str(v) for n, v in said.items()}
