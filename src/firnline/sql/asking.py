"""What a reader of the data source asks for, from Spark's options to a relation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from firnline.app.places import Places, open_places
from firnline.app.runs import Runs
from firnline.errors import UnsupportedFormat, UsageError
from firnline.formats.registry import kit_named
from firnline.history.opening import History
from firnline.model.names import written
from firnline.model.snapshots import SnapshotId
from firnline.model.times import format_instant, parse_instant
from firnline.ops.history.reading import history_of
from firnline.ops.marks.tags import resolve
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.finding import tiers_by_snapshot
from firnline.ports.formats import State
from firnline.ports.inspect import HasMetadataLog, Inspect, Manifest, latest_at
from firnline.ports.kits import ReadsRows
from firnline.sql import METADATA, ROWS
from firnline.sql.accounts import LedgerRows, log_rows, ref_rows, run_rows
from firnline.sql.contents import FILE, EntryRows, FileRows
from firnline.sql.home import at_home
from firnline.sql.lake_wide import OF_LAKE
from firnline.sql.partitions import PartitionRows
from firnline.sql.relations import Ready, Relation
from firnline.sql.rows import TableRows
from firnline.sql.snapshots import Snapshots
from firnline.stores.wrappers.read_only import ReadOnly

_OTHERS = "its `history` tells which snapshot was the current one when"
AT_A_SNAPSHOT = ("entries", "files", "manifests", "partitions", ROWS)
"""What is of one snapshot; all else is of the table."""
_OPTIONS = (
    "catalog", "table", "what", "columns", "versionAsOf", "timestampAsOf", "version", "whole", "pushdown", "config",
    "home",
)  # fmt: skip
_KNOWN = frozenset({"path", *(name.lower() for name in _OPTIONS)})


@dataclass(frozen=True, slots=True)
class RelationRequest:
    """One relation of one table, or of the whole lake if `table` is None. It shows a snapshot (an id or a ref), or the
    one that was current at an instant. `version` is a metadata location: several relations of one query see the same.
    `whole`: a table of the lake that cannot be read is an error, and not left out.
    """

    table: str | None
    what: str
    columns: tuple[str, ...] | None = None
    snapshot: str | None = None
    at_ms: int | None = None
    version: str | None = None
    config: str | None = None
    home: str | None = field(default=None, repr=False)
    whole: bool = False


def asked_of(options: Mapping[str, str]) -> RelationRequest:
    """Returns what the options ask for. Raises UsageError for one that is missing, unknown or of no use."""
    given = {name.lower(): value for name, value in options.items()}
    unknown = sorted(given.keys() - _KNOWN)
    if unknown:
        raise UsageError(f"the option {unknown[0]!r} is unknown", hint=f"options are: {', '.join(sorted(_OPTIONS))}")
    what = given.get("what", "all_snapshots").lower()
    instant = given.get("timestampasof")
    asked = RelationRequest(
        table=_table_of(given),
        what=what,
        columns=_columns_of(given.get("columns")),
        snapshot=given.get("versionasof"),
        at_ms=None if instant is None else parse_instant(instant),
        version=given.get("version"),
        config=given.get("config"),
        home=given.get("home"),
        whole=given.get("whole", "false").lower() == "true",
    )
    _refuse_senseless(asked)
    return asked


def _table_of(given: Mapping[str, str]) -> str | None:
    """Returns the table that is named by its option, or by what `load` was given. Raises UsageError for two."""
    catalog, table, loaded = given.get("catalog"), given.get("table"), given.get("path")
    if table and loaded and table != loaded:
        raise UsageError(f"two tables are named: {table} and {loaded}", hint="give load a name, or the option 'table'")
    table = table or loaded
    return f"{written((catalog,))}.{table}" if catalog and table else table


def _columns_of(said: str | None) -> tuple[str, ...] | None:
    return tuple(each.strip() for each in said.split(",") if each.strip()) if said else None


def _refuse_senseless(asked: RelationRequest) -> None:
    if not asked.table and asked.what not in OF_LAKE:
        hint = f"only {' and '.join(OF_LAKE)} are told of a whole lake; options are: {', '.join(sorted(_OPTIONS))}"
        raise UsageError("the option 'table' is missing", hint=hint)
    if asked.what not in (*METADATA, ROWS):
        raise UsageError(f"there is no {asked.what!r} of a table", hint=f"one of: {', '.join((*METADATA, ROWS))}")
    if asked.snapshot is not None and asked.at_ms is not None:
        raise UsageError("a version and an instant are both given", hint="give versionAsOf or timestampAsOf")
    if asked.what not in AT_A_SNAPSHOT and (asked.snapshot is not None or asked.at_ms is not None):
        raise UsageError(
            f"{asked.what} is the same at every version", hint=f"versions have: {', '.join(AT_A_SNAPSHOT)}"
        )


def open_relation(asked: RelationRequest) -> tuple[Relation, str]:
    """Returns the relation and the version of the table that it shows; a lake has none."""
    if asked.table is None:
        return OF_LAKE[asked.what](asked.config, asked.home, asked.whole), ""
    with at_home(asked.home, asked.config) as config:
        places = open_places(config)
        work = places.table_context(asked.table)
        state = _state(work, asked.version)
        return _RELATIONS[asked.what](_Opened(places, work, state, asked)), state.fence


def _state(work: TableContext, version: str | None) -> State:
    return work.source.load() if version is None else work.source.format.load(str(work.source.name), version)


@dataclass(frozen=True, slots=True)
class _Opened:
    """A table that was found: how it is worked on, one version of it, and a store that cannot write."""

    places: Places
    work: TableContext
    state: State
    asked: RelationRequest

    @property
    def store(self) -> ReadOnly:
        return ReadOnly(self.work.store)

    @property
    def inspect(self) -> Inspect:
        return kit_named(self.state.format).inspect(self.store)

    @property
    def snapshot(self) -> SnapshotId | None:
        if self.asked.at_ms is not None:
            return snapshot_at(self.inspect, self.state, self.asked.at_ms)
        return self.state.current if self.asked.snapshot is None else resolve(self.state, self.asked.snapshot)

    @property
    def version(self) -> str | None:
        """What rows are read of: a branch, another ref or a snapshot; None for the table as it is."""
        return self.snapshot if self.asked.at_ms is not None else self.asked.snapshot

    def snapshots(self, history: History | None) -> Snapshots:
        table_format = self.work.source.format
        live = frozenset(self.state.graph.by_id)
        tiers = {} if history is None else tiers_by_snapshot(self.work, self.state)
        return Snapshots(table_format, self.store, self.state.table, self.state.fence, history, live, tiers)

    def manifests(self) -> tuple[Manifest, ...]:
        return tuple(self.inspect.units(self.state, self.snapshot))


def snapshot_at(inspect: Inspect, state: State, at_ms: int) -> SnapshotId:
    """Returns the snapshot that was the current one at an instant. Raises UsageError if the table has it no more."""
    log = list(inspect.log(state))
    found = latest_at(log, at_ms)
    if found is None or found not in state.graph:
        begins = f"what it tells begins at {format_instant(log[0][0])}; " if log else ""
        raise UsageError(
            f"{state.table} has no snapshot from {format_instant(at_ms)} or before",
            hint=f"{begins}all_snapshots also has what expired, without its rows",
        )
    return found


def _entries(it: _Opened) -> Relation:
    """Returns the entries, of each file only the parts that are asked for by `data_file.PART`."""
    asked, whole = it.asked.columns or (FILE,), EntryRows(it.inspect.entries(it.state), it.manifests())
    parts = [name.removeprefix(f"{FILE}.") for name in asked if name.startswith(f"{FILE}.")]
    for each in parts:
        if each not in whole.known_parts:
            raise UsageError(f"there is no {each!r} in {FILE}", hint=f"it has: {', '.join(whole.known_parts)}")
    return whole if FILE in asked else whole.narrowed(parts)


def _partitions(it: _Opened) -> Relation:
    times = {each.id: each.timestamp_ms for each in it.state.graph}
    return PartitionRows(it.inspect.live(it.state, it.snapshot), it.manifests(), times)


def _metadata_log(it: _Opened) -> Relation:
    inspect = it.inspect
    if not isinstance(inspect, HasMetadataLog):
        raise UnsupportedFormat(f"{it.state.table}: a {it.state.format} table has no log of metadata", hint=_OTHERS)
    return Ready(inspect.metadata_log(it.state))


def _rows(it: _Opened) -> Relation:
    """Returns a table's own rows. Raises UnsupportedFormat where only an engine of its format can read them."""
    kit, version = kit_named(it.state.format), it.version
    if version is not None:
        resolve(it.state, version)
    if not isinstance(kit, ReadsRows):
        raise UnsupportedFormat(f"{it.state.table}: rows of a {kit.name} table are not read", hint="ask its own engine")
    return TableRows(kit.rows(it.state, it.places.place(it.work.source.name).settings, version))


_RELATIONS: Mapping[str, Callable[[_Opened], Relation]] = {
    "snapshots": lambda it: it.snapshots(None),
    "all_snapshots": lambda it: it.snapshots(history_of(it.work.source, it.state, it.store)),
    "entries": _entries,
    "files": lambda it: FileRows(it.inspect.live(it.state, it.snapshot), it.manifests()),
    "partitions": _partitions,
    "manifests": lambda it: Ready(it.inspect.manifests(it.state, it.snapshot)),
    "refs": lambda it: ref_rows(it.state),
    "history": lambda it: log_rows(it.inspect, it.state),
    "metadata_log_entries": _metadata_log,
    "runs": lambda it: run_rows([each.to_json() for each in Runs(it.places).of_table(it.work.source.name)]),
    "ledger": lambda it: LedgerRows(it.store, it.work.root(it.state)),
    ROWS: _rows,
}
