"""What a reader of the data source asks for, from Spark's options to a relation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from firnline.app.places import Places, open_places
from firnline.app.runs import Runs
from firnline.errors import UnsupportedFormat, UsageError
from firnline.formats.registry import kit_named
from firnline.history.opening import History
from firnline.model.names import written
from firnline.ops.history.reading import history_of
from firnline.ops.marks.tags import resolve
from firnline.ops.table.context import TableContext
from firnline.ports.formats import State
from firnline.ports.inspect import Inspect, Manifest
from firnline.ports.kits import ReadsRows
from firnline.sql.accounts import LedgerRows, log_rows, ref_rows, run_rows
from firnline.sql.contents import EntryRows, FileRows
from firnline.sql.relations import Ready, Relation
from firnline.sql.rows import TableRows
from firnline.sql.snapshots import Snapshots
from firnline.stores.wrappers.read_only import ReadOnly

ROWS = "rows"
_OPTIONS = frozenset(
    {"catalog", "table", "what", "columns", "snapshot", "version", "pushdown", "config", "home", "path"}
)


@dataclass(frozen=True, slots=True)
class RelationRequest:
    """One relation of one table. `version` is a metadata location: several relations of one query see the same."""

    table: str
    what: str
    columns: tuple[str, ...] | None = None
    snapshot: str | None = None
    version: str | None = None
    config: str | None = None
    home: str | None = None


def asked_of(options: Mapping[str, str]) -> RelationRequest:
    """Returns what the options ask for. Raises UsageError for one that is missing or unknown."""
    given = {name.lower(): value for name, value in options.items()}
    unknown = sorted(given.keys() - _OPTIONS)
    if unknown or not given.get("table"):
        said = f"the option {unknown[0]!r} is unknown" if unknown else "the option 'table' is missing"
        raise UsageError(said, hint=f"options are: {', '.join(sorted(_OPTIONS - {'path'}))}")
    what = given.get("what", "all_snapshots").lower()
    if what not in (*METADATA, ROWS):
        raise UsageError(f"there is no {what!r} of a table", hint=f"one of: {', '.join((*METADATA, ROWS))}")
    catalog, table, columns = given.get("catalog"), given["table"], given.get("columns")
    return RelationRequest(
        table=f"{written((catalog,))}.{table}" if catalog else table,
        what=what,
        columns=tuple(each.strip() for each in columns.split(",") if each.strip()) if columns else None,
        snapshot=given.get("snapshot"),
        version=given.get("version"),
        config=given.get("config"),
        home=given.get("home"),
    )


@contextmanager
def at_home(home: str | None) -> Iterator[None]:
    """Lets PyIceberg's configuration be found in a folder: a worker has the environment of the JVM's start."""
    before = os.environ.get("PYICEBERG_HOME")
    if home:
        os.environ["PYICEBERG_HOME"] = home
    try:
        yield
    finally:
        if home and before is None:
            del os.environ["PYICEBERG_HOME"]
        elif home and before is not None:
            os.environ["PYICEBERG_HOME"] = before


def open_relation(asked: RelationRequest) -> tuple[Relation, str]:
    """Returns the relation and the version of the table that it shows."""
    with at_home(asked.home):
        places = open_places(asked.config)
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
    def snapshot(self) -> str | None:
        return self.state.current if self.asked.snapshot is None else resolve(self.state, self.asked.snapshot)

    def snapshots(self, history: History | None) -> Snapshots:
        table_format = self.work.source.format
        live = frozenset(self.state.graph.by_id)
        return Snapshots(table_format, self.store, self.state.table, self.state.fence, history, live)

    def manifests(self) -> tuple[Manifest, ...]:
        return tuple(self.inspect.units(self.state, self.snapshot))


def _rows(it: _Opened) -> Relation:
    """Returns a table's own rows. Raises UnsupportedFormat where only an engine of its format can read them."""
    kit = kit_named(it.state.format)
    if not isinstance(kit, ReadsRows):
        raise UnsupportedFormat(f"{it.state.table}: rows of a {kit.name} table are not read", hint="ask its own engine")
    return TableRows(kit.rows(it.state, it.places.place(it.work.source.name).settings, it.snapshot))


_RELATIONS: Mapping[str, Callable[[_Opened], Relation]] = {
    "snapshots": lambda it: it.snapshots(None),
    "all_snapshots": lambda it: it.snapshots(history_of(it.work.source, it.state, it.store)),
    "entries": lambda it: EntryRows(it.inspect.entries(it.state), it.manifests()),
    "files": lambda it: FileRows(it.inspect.live(it.state, it.snapshot), it.manifests()),
    "manifests": lambda it: Ready(it.inspect.manifests(it.state, it.snapshot)),
    "refs": lambda it: ref_rows(it.state),
    "history": lambda it: log_rows(it.inspect, it.state),
    "runs": lambda it: run_rows([each.to_json() for each in Runs(it.places).of_table(it.work.source.name)]),
    "ledger": lambda it: LedgerRows(it.store, it.work.root(it.state)),
    ROWS: _rows,
}
METADATA = tuple(name for name in _RELATIONS if name != ROWS)
