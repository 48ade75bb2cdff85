"""From the metadata document to the State that every other part works on, with bridges over the holes of earlier
expiries.

Iceberg's snapshots name their parents and nothing further. When a policy keeps one snapshot a month, the next reading
of the table would find a history that ends at the first hole, and the next run would expire what the policy keeps. A
property survives the commits of every engine, and only firnline reads this one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from firnline.errors import RefusedForSafety
from firnline.formats.iceberg import fields
from firnline.formats.iceberg.document import Document
from firnline.formats.iceberg.names import plain_path
from firnline.model.graph import Graph
from firnline.model.snapshots import MAIN, Ref, RefKind, Snapshot, SnapshotId
from firnline.model.times import DAY_MS
from firnline.policy.holds import parse_holds, unreadable
from firnline.policy.native import LONGEST_AGE_MS, NativeRetention
from firnline.ports.formats import Capabilities, FenceKind, State, UndoWindow
from firnline.tiers.belonging import is_archive

PROPERTY = "firnline.lineage"


def parse_bridges(properties: Mapping[str, str]) -> dict[SnapshotId, SnapshotId]:
    """Returns the bridges. Raises where they cannot be read: without them rules would keep less than they promise."""
    text = properties.get(PROPERTY)
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(older, str) for older in found.values()):
        raise RefusedForSafety(
            f"the table property {PROPERTY} cannot be read: {text[:80]!r}",
            hint="remove the property if the history below its holes may fall under the table's own retention",
        )
    return found


def with_bridges(document: Document, bridges: Mapping[SnapshotId, SnapshotId]) -> dict[str, Any]:
    """Returns the document with these bridges and no others; without any, without the property."""
    present = document.get("properties") or {}
    rest = {name: value for name, value in present.items() if name != PROPERTY}
    said = {PROPERTY: json.dumps(bridges, separators=(",", ":"), sort_keys=True)} if bridges else {}
    if rest == present and not said:
        return dict(document)
    return {**document, "properties": {**rest, **said}}


class LastRead:
    """Remembers one state by what it was read from. A copy that travels remembers nothing."""

    def __init__(self) -> None:
        self._last: tuple[tuple[object, bytes], State] | None = None

    def __reduce__(self) -> tuple[type[LastRead], tuple[()]]:
        return LastRead, ()

    def of(self, named: tuple[str, str], data: bytes, read: Callable[[], State]) -> State:
        """Returns what `read` makes of the data. It is asked where name, place or any byte differ from the last time:
        a table that was dropped and made again may have its metadata under the same name.
        """
        source = (named, sha256(data).digest())
        last = self._last
        if last is not None and last[0] == source:
            return last[1]
        state = read()
        self._last = (source, state)
        return state


NO_SNAPSHOT = -1
DEFAULT_MAX_SNAPSHOT_AGE_MS = 5 * DAY_MS
DEFAULT_MIN_SNAPSHOTS = 1
_OWNED_PATHS = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
TRANSLATED = {
    "delta-version": "a Delta Lake table",
    "XTABLE_METADATA": "a table that XTable translated",
    "snapshot_source": "the table that it was taken from",
}
"""What other formats' translators leave in the properties, each with whose data files the table has then."""


def state_of(document: Document, table: str, metadata_location: str) -> State:
    """Returns the table's state. Raises UnreadableMetadata, naming the field, where the document contradicts itself."""
    where = metadata_location
    properties = fields.properties_of(document, where)
    location = plain_path(fields.text(document, "location", where), where)
    _check_log(document, where)
    graph = _graph(document, properties, where)
    current = _current(document, graph, where)
    holds, uuid = parse_holds(properties), _uuid(document, location, where)
    return State(
        table=table,
        format="iceberg",
        location=location,
        uuid=uuid,
        fence=metadata_location,
        graph=graph,
        current=current,
        refs=_refs(document, current, where),
        native=_native(properties, where),
        capabilities=Capabilities(FenceKind.SWAP, UndoWindow.AFTER_COMMIT),
        properties=properties,
        document=document,
        owned=(location, *_owned(properties, where)),
        holds=holds,
        forbidden=unreadable(holds) or _forbidden(uuid, properties),
    )


def _uuid(document: Document, location: str, where: str) -> str:
    """Returns what tells the table from one re-created in its place. Version 1 may have none."""
    if document.get("table-uuid") is None:
        return f"no uuid, at {location}"
    return fields.text(document, "table-uuid", where)


def _check_log(document: Document, where: str) -> None:
    """Raises UnreadableMetadata unless every earlier metadata file has one plain path: a table may ask for their
    removal.
    """
    for entry in fields.objects(document, "metadata-log", where):
        plain_path(fields.text(entry, "metadata-file", where), where)


def _owned(properties: Mapping[str, str], where: str) -> Iterator[str]:
    """Yields the folders beside its location that the table writes to."""
    return (plain_path(properties[name], where) for name in _OWNED_PATHS if properties.get(name))


def _graph(document: Document, properties: Mapping[str, str], where: str) -> Graph:
    snapshots = [_snapshot(each, where) for each in fields.objects(document, "snapshots", where)]
    graph = Graph(snapshots, parse_bridges(properties))
    if len(graph) != len(snapshots):
        raise fields.damaged(where, "two snapshots share one id")
    return graph


def _snapshot(each: fields.Fields, where: str) -> Snapshot:
    parent = fields.whole_or_none(each, "parent-snapshot-id", where)
    summary = each.get("summary")
    return Snapshot(
        id=str(fields.whole(each, "snapshot-id", where)),
        parent=None if parent is None or parent == NO_SNAPSHOT else str(parent),
        timestamp_ms=fields.whole(each, "timestamp-ms", where),
        operation=summary.get("operation") if isinstance(summary, dict) else None,
    )


def _current(document: Document, graph: Graph, where: str) -> SnapshotId | None:
    current = fields.whole_or_none(document, "current-snapshot-id", where)
    if current is None or current == NO_SNAPSHOT:
        return None
    if str(current) not in graph:
        raise fields.damaged(where, f"the current snapshot {current} is not among the snapshots")
    return str(current)


def _refs(document: Document, current: SnapshotId | None, where: str) -> dict[str, Ref]:
    """Returns every ref. Older writers name none: there the current snapshot is the head of main."""
    refs = {name: _ref(name, each, where) for name, each in fields.mapping(document, "refs", where).items()}
    if current is not None and MAIN not in refs:
        refs[MAIN] = Ref(MAIN, RefKind.BRANCH, current)
    return refs


def _ref(name: str, each: Any, where: str) -> Ref:
    if not isinstance(each, dict) or each.get("type") not in tuple(RefKind):
        raise fields.damaged(where, f"ref {name!r} is neither a branch nor a tag")
    if name == MAIN and each["type"] != RefKind.BRANCH:
        raise fields.damaged(where, "the ref main is a tag, not a branch")
    return Ref(
        name=name,
        kind=RefKind(each["type"]),
        snapshot=str(fields.whole(each, "snapshot-id", where)),
        max_ref_age_ms=fields.whole_or_none(each, "max-ref-age-ms", where),
        max_snapshot_age_ms=fields.whole_or_none(each, "max-snapshot-age-ms", where),
        min_snapshots_to_keep=fields.whole_or_none(each, "min-snapshots-to-keep", where),
    )


def _native(properties: Mapping[str, str], where: str) -> NativeRetention:
    def number(name: str, default: int) -> int:
        return fields.property_number(properties, f"history.expire.{name}", default, where)

    return NativeRetention(
        max_snapshot_age_ms=number("max-snapshot-age-ms", DEFAULT_MAX_SNAPSHOT_AGE_MS),
        min_snapshots_to_keep=number("min-snapshots-to-keep", DEFAULT_MIN_SNAPSHOTS),
        max_ref_age_ms=number("max-ref-age-ms", LONGEST_AGE_MS),
    )


def _forbidden(uuid: str, properties: Mapping[str, str]) -> str | None:
    """Returns why nothing may be removed: the table says so, or its files are also those of another format's table,
    whose log is not read here. Java reads any text but 'true' as false, and so do we. A tier's table says so to all
    other engines: firnline hands its snapshots on, and to nothing.
    """
    word = next((each for each in TRANSLATED if each in properties), None)
    if word is not None:
        return f"its files are also those of {TRANSLATED[word]} (the table property {word})"
    value = properties.get("gc.enabled", "true")
    if value.lower() == "true" or is_archive(uuid, properties):
        return None
    return f"the table property gc.enabled is {value!r}"
