"""A toy of a table format, and its kit: a JSON list of snapshots, each with a list of files.

`toy/000007.json` is the seventh version of a table: its snapshots, tags and properties. A snapshot's files are in a
list of its own, `lists/ID.json`: `[name, size]` of what lies in `files/`. Who creates the next version has committed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa

from firnline.errors import AlreadyExists, NoSuchTable, ObjectNotFound, RefusedForSafety, UnreadableMetadata
from firnline.model.files import File, FileKind
from firnline.model.graph import Graph
from firnline.model.locations import identity, join
from firnline.model.removals import Removal
from firnline.model.snapshots import MAIN, Ref, RefKind, Snapshot, SnapshotId
from firnline.model.times import DAY_MS
from firnline.policy.holds import parse_holds, unreadable
from firnline.policy.native import LONGEST_AGE_MS, NativeRetention
from firnline.ports.catalogs import Attempt, Step, Still, SwapOutcome, TableName, Version, always
from firnline.ports.expanding import ROW_COLUMNS, Expanded, Together
from firnline.ports.formats import Amendment, Capabilities, Edited, FenceKind, State, UndoWindow
from firnline.ports.inspect import Manifest
from firnline.ports.listings import WrittenFolder
from firnline.ports.stores import Get, Read, ReadWrite, shared

_ROWS = pa.schema(zip(ROW_COLUMNS, (pa.string(), pa.string(), pa.int64(), pa.string(), pa.bool_()), strict=True))
_FILE = pa.struct([("content", pa.int32()), ("file_path", pa.string()), ("file_size_in_bytes", pa.int64())])
_ENTRIES = pa.schema([("status", pa.int32()), ("snapshot_id", pa.int64()), ("data_file", _FILE)])
_MANIFESTS = pa.schema([("content", pa.int32()), ("path", pa.string()), ("length", pa.int64())])


def version_key(location: str, number: int) -> str:
    return join(location, "toy", f"{number:06d}.json")


def number_of(version: str) -> int:
    return int(version.rpartition("/")[2].partition(".")[0])


def read_json(store: Get, key: str, what: str, size: int | None = None) -> Any:
    """Returns what an object says. Raises UnreadableMetadata, with its name, where it is missing or not whole."""
    try:
        data = store.get(key)
        if size is not None and len(data) != size:
            raise ValueError(f"it has {len(data)} bytes, the table says {size}")
        return json.loads(data)
    except (ObjectNotFound, ValueError) as damage:
        raise UnreadableMetadata(f"{what} is missing or damaged: {key}: {damage}", "nothing was changed") from damage


@dataclass(frozen=True, slots=True)
class ToyExpand:
    """Opens the lists of snapshots."""

    store: Get
    order: tuple[FileKind, ...] = (FileKind.MANIFEST,)
    folds: bool = False

    def share(self, parts: int) -> ToyExpand:
        return ToyExpand(shared(self.store, parts))

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        rows, of = list[tuple[str, str, int, str, bool]](), list[int]()
        for number, named in enumerate(together(self.named, units)):
            unit = units[number]
            rows += [(identity(unit.key), unit.key, unit.size or 0, unit.kind.value, False), *named]
            of += [number] * (1 + len(named))
        columns = [[row[number] for row in rows] for number in range(len(_ROWS))]
        return Expanded(pa.record_batch(columns, schema=_ROWS), np.array(of, dtype=np.int64))

    def named(self, unit: File) -> list[tuple[str, str, int, str, bool]]:
        location = unit.key.rpartition("/lists/")[0]
        said = read_json(self.store, unit.key, unit.kind.value, unit.size)
        keys = ((join(location, "files", name), size) for name, size in said)
        return [(identity(key), key, size, FileKind.DATA.value, False) for key, size in keys]


@dataclass(frozen=True, slots=True)
class ToyFormat:
    store: Get
    name: str = "toy"
    purge_order: tuple[FileKind, ...] = (FileKind.DATA, FileKind.MANIFEST, FileKind.METADATA)
    unique_names: bool = False
    paths_follow_folder: bool = True

    @property
    def expand(self) -> ToyExpand:
        return ToyExpand(self.store)

    def load(self, table: str, metadata_location: str) -> State:
        return self._state(read_json(self.store, metadata_location, "metadata"), table, metadata_location)

    def _state(self, said: Mapping[str, Any], table: str, where: str) -> State:
        location, properties = where.rpartition("/toy/")[0], said["properties"]
        holds, current = parse_holds(properties), str(said["main"])
        each = (Snapshot(str(e["id"]), e["parent"] and str(e["parent"]), e["time"]) for e in said["snapshots"])
        tags = {name: Ref(name, RefKind.TAG, str(tag["id"]), tag.get("age")) for name, tag in said["tags"].items()}
        refs = {**tags, MAIN: Ref(MAIN, RefKind.BRANCH, current)}
        native = NativeRetention(5 * DAY_MS, 1, LONGEST_AGE_MS)
        can = Capabilities(FenceKind.SWAP, UndoWindow.AFTER_COMMIT)
        return State(
            table, self.name, location, said["uuid"], where, Graph(each), current, refs, native, can, properties, said,
            owned=(location,), holds=holds, forbidden=unreadable(holds),
        )  # fmt: skip

    def metadata_files(self, state: State) -> Iterator[str]:
        return (version_key(state.location, number) for number in range(number_of(state.fence), 0, -1))

    def places(self, state: State) -> tuple[WrittenFolder, ...]:
        kinds = {"toy": FileKind.METADATA, "lists": FileKind.MANIFEST, "files": FileKind.DATA}
        return tuple(
            WrittenFolder(join(state.location, name), ((r"[^/.][^/]*", kind),)) for name, kind in kinds.items()
        )

    def table_of(self, key: str) -> State | None:
        try:
            return self.load(key, key)
        except UnreadableMetadata as damage:
            if isinstance(damage.__cause__, ObjectNotFound):
                return None
            raise

    def written_ms(self, state: State) -> int:
        return max((each.timestamp_ms for each in state.graph), default=0)

    def entries(self, state: State) -> int:
        return 0

    def snapshot_objects(self, state: State) -> Iterator[Mapping[str, Any]]:
        for each in state.document["snapshots"]:
            yield {"snapshot-id": each["id"], "parent-snapshot-id": each["parent"], "timestamp-ms": each["time"]}

    def roots(self, state: State) -> Iterator[tuple[SnapshotId, File]]:
        for each in state.document["snapshots"]:
            key = join(state.location, "lists", f"{each['id']}.json")
            yield str(each["id"]), File(FileKind.MANIFEST, key, each["size"], opens=True)

    def expire(
        self,
        state: State,
        snapshots: Set[SnapshotId],
        refs: Set[str],
        now_ms: int,
        *,
        amendment: Amendment | None = None,
        **_: Any,
    ) -> Edited:
        for held in (ref for ref in state.refs.values() if ref.snapshot in snapshots and ref.name not in refs):
            raise RefusedForSafety(f"ref {held.name} needs snapshot {held.snapshot}", hint="plan again")
        said = dict(state.document)
        gone = [each for each in said["snapshots"] if str(each["id"]) in snapshots]
        said["snapshots"] = [each for each in said["snapshots"] if str(each["id"]) not in snapshots]
        tags = {name: tag for name, tag in said["tags"].items() if name in refs}
        said["tags"] = {name: tag for name, tag in said["tags"].items() if name not in refs}
        objects = tuple(each for each in self.snapshot_objects(state) if str(each["snapshot-id"]) in snapshots)
        named = {name: str(tag["id"]) for name, tag in tags.items()}
        removal = Removal(objects, named, {"snapshots": gone, "tags": tags})
        return replace(self._edited(state, said, amendment), removal=removal)

    def restore(self, state: State, removal: Removal, now_ms: int, *, amendment: Amendment | None = None) -> Edited:
        said, left_alone = _restored(state.document, removal)
        return replace(self._edited(state, said, amendment), left_alone=left_alone)

    def amend(self, state: State, amendment: Amendment, now_ms: int) -> Edited:
        return self._edited(state, dict(state.document), amendment)

    def with_removal(self, state: State, removal: Removal) -> State:
        return self._state(_restored(state.document, removal)[0], state.table, state.fence)

    def part_of(self, removal: Removal, snapshots: Set[SnapshotId]) -> Removal:
        gone = [each for each in removal.payload["snapshots"] if str(each["id"]) in snapshots]
        objects = tuple(each for each in removal.snapshots if str(each["snapshot-id"]) in snapshots)
        return Removal(objects, payload={"snapshots": gone, "tags": {}})

    def _edited(self, state: State, said: dict[str, Any], amendment: Amendment | None) -> Edited:
        wanted = amendment or Amendment()
        tags = {name: tag for name, tag in said["tags"].items() if name not in wanted.refs_gone}
        for ref in wanted.refs:
            tags[ref.name] = {**tags.get(ref.name, {}), "id": int(ref.snapshot), "age": ref.max_ref_age_ms}
        kept = {name: text for name, text in said["properties"].items() if name not in wanted.properties_gone}
        said = {**said, "tags": tags, "properties": {**kept, **wanted.properties}}
        return Edited(json.dumps(said).encode(), version_key(state.location, number_of(state.fence) + 1), said)


def _restored(document: Mapping[str, Any], removal: Removal) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns the table with all back, and the tags that stay as somebody made them since."""
    present = {each["id"] for each in document["snapshots"]}
    back = [each for each in removal.payload["snapshots"] if each["id"] not in present]
    snapshots = sorted([*document["snapshots"], *back], key=lambda each: each["id"])
    known, tags = {each["id"] for each in snapshots}, removal.payload["tags"]
    left = tuple(name for name, tag in tags.items() if name in document["tags"] or tag["id"] not in known)
    returning = {name: tag for name, tag in tags.items() if name not in left}
    return {**document, "snapshots": snapshots, "tags": {**returning, **document["tags"]}}, left


@dataclass(frozen=True, slots=True)
class ToyFolder:
    """Finds the newest version in a table's folder; the name of the next one is the lock of a commit."""

    store: Any
    undo: UndoWindow = UndoWindow.AFTER_COMMIT

    def locate(self, table: TableName) -> str:
        found = sorted(each for each in self.store.names(join(table.name, "toy")) if each.endswith(".json"))
        if not found:
            raise NoSuchTable(f"no toy table at {table.name}", hint="a table's folder has a folder `toy` in it")
        return join(table.name, "toy", found[-1])

    def passed(self, table: TableName, current: str) -> Sequence[str]:
        return ()

    def prepare(self, table: TableName, step: Step) -> Attempt:
        digest = sha256(step.data).hexdigest()
        return Attempt(table, step, {"base": step.base.location, "location": step.suggested, "digest": digest})

    def commit(self, attempt: Attempt) -> SwapOutcome:
        if self.locate(attempt.table) not in (attempt.proof["base"], attempt.proof["location"]):
            return SwapOutcome.LOST
        with suppress(AlreadyExists):
            self.store.put_if_absent(attempt.proof["location"], attempt.step.data)
        return SwapOutcome.DONE if self.landed(attempt.proof) else SwapOutcome.LOST

    def fence(self, proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
        may_land = any(proof["base"] == now.location for proof in proofs)
        return Amendment(properties={"fenced": now.location}) if may_land else None

    def landed(self, proof: Mapping[str, Any], now: Version | None = None, still: Still = always) -> bool:
        with suppress(ObjectNotFound):
            return sha256(self.store.get(proof["location"])).hexdigest() == proof["digest"]
        return False


@dataclass(frozen=True, slots=True)
class ToyTables:
    """A table's own metadata as rows; called with a list, the files of a snapshot."""

    store: Get

    @property
    def schema(self) -> pa.Schema:
        return _ENTRIES

    def __call__(self, manifest: Manifest, wanted: Collection[str] | None = None) -> pa.RecordBatch:
        named = ToyExpand(self.store).named(File(FileKind.MANIFEST, manifest.key, manifest.size, opens=True))
        files = [{"content": 0, "file_path": key, "file_size_in_bytes": size} for _, key, size, _, _ in named]
        rows = [{"status": 1, "snapshot_id": manifest.snapshot, "data_file": each} for each in files]
        return pa.RecordBatch.from_pylist(rows, schema=_ENTRIES)

    def log(self, state: State) -> Iterator[tuple[int, SnapshotId]]:
        return ((each.timestamp_ms, each.id) for each in state.graph)

    def manifests(self, state: State, snapshot: SnapshotId | None) -> pa.Table:
        rows = [{"content": 0, "path": each.key, "length": each.size} for each in self.units(state, snapshot)]
        return pa.Table.from_pylist(rows, schema=_MANIFESTS)

    def units(self, state: State, snapshot: SnapshotId | None) -> list[Manifest]:
        found = ((owner, file) for owner, file in ToyFormat(self.store).roots(state) if owner == snapshot)
        return [Manifest(file.key, file.size or 0, 0, int(owner), 0) for owner, file in found]

    def entries(self, state: State, snapshot: SnapshotId | None = None) -> ToyTables:
        return self

    live = entries


class ToyKit:
    name = "toy"
    documents = (r"toy/[0-9]{6}\.json",)
    folders = ("files", "lists")
    known_by_folder = True

    def has_table(self, store: Read, location: str) -> bool:
        return bool(store.names(join(location, "toy")))

    def table_folder(self, document: str) -> str:
        return document.rpartition("/toy/")[0]

    def format(self, store: Read, trusted: frozenset[SnapshotId] = frozenset()) -> ToyFormat:
        return ToyFormat(store)

    def folder_tables(self, store: ReadWrite, location: str = "") -> ToyFolder:
        return ToyFolder(store)

    commits = folder_tables

    def inspect(self, store: Get) -> ToyTables:
        return ToyTables(store)


KIT = ToyKit()
