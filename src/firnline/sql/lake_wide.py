"""`firnline.snapshots` and `firnline.runs`: of every table of every catalog at once.

A table that cannot be read is told on stderr and has no rows; the others have theirs. Or, where the whole is asked for,
it is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from firnline.app.many import on_tables
from firnline.app.places import Places, open_places
from firnline.app.runs import Runs
from firnline.errors import FirnlineError
from firnline.foreign import harmless
from firnline.ops.history.reading import history_of
from firnline.ops.tiers.finding import tiers_by_snapshot
from firnline.plans.answers import Found
from firnline.ports.catalogs import TableName
from firnline.sql.accounts import RUNS, run_rows
from firnline.sql.home import at_home
from firnline.sql.relations import Piece, Ready, Relation, TimeBounds
from firnline.sql.snapshots import ALL_SNAPSHOTS, Snapshots
from firnline.stores.wrappers.read_only import ReadOnly

_TABLE = "table"
_AT_ONCE = 8
"""How many tables are opened side by side: most of the time goes to waiting for stores."""
_ENOUGH = 5_000
"""Snapshots for one task: one for each small table would cost more than it reads."""


def tell(table: str, problem: FirnlineError) -> None:
    print(harmless(f"warning: {table} is left out: {problem.message}"), file=sys.stderr, flush=True)


def _of_each(places: Places, act: Callable[[TableName], Found], whole: bool) -> Iterator[tuple[str, Found]]:
    """Yields what an act returns for each table that can be read; the others are told, and catalogs too. Raises what is
    wrong with the first of them if the whole is asked for.
    """
    for answer in on_tables(places, None, act, _AT_ONCE):
        if answer.problem is not None and whole:
            raise answer.problem
        if answer.problem is not None:
            tell(answer.table, answer.problem)
        elif answer.value is not None:
            yield answer.table, answer.value


@dataclass(frozen=True, slots=True)
class TablePiece:
    """A piece of one table's snapshots, with the means to read it."""

    table: str
    snapshots: Snapshots
    piece: Piece


@dataclass(frozen=True, slots=True)
class SnapshotsOfLake:
    """The snapshots of every table, live and remembered. Tables are found and opened while planning: executors reach
    stores, and perhaps no catalog.
    """

    config: str | None = None
    home: str | None = field(default=None, repr=False)
    whole: bool = False

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(_TABLE, pa.string()), *ALL_SNAPSHOTS])

    def pieces(self, bounds: TimeBounds) -> Sequence[Piece]:
        with at_home(self.home, self.config) as config:
            places = open_places(config)
            found = [
                (len(snapshots.live), TablePiece(table, snapshots, piece))
                for table, snapshots in _of_each(places, lambda name: _snapshots_of(places, name), self.whole)
                for piece in snapshots.pieces(bounds)
            ]
        return _together(found)

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for each in piece:
            try:
                yield from _with_table(each, columns)
            except FirnlineError as problem:  # the history of one table must not hide the rest of the lake
                if self.whole:
                    raise
                tell(each.table, problem)


def _snapshots_of(places: Places, name: TableName) -> Snapshots:
    work = places.table_context(name)
    state, store = work.source.load(), ReadOnly(work.store)
    history = history_of(work.source, state, store)
    live, tiers = frozenset(state.graph.by_id), tiers_by_snapshot(work, state)
    return Snapshots(work.source.format, store, state.table, state.fence, history, live, tiers)


def _together(found: Sequence[tuple[int, TablePiece]]) -> list[tuple[TablePiece, ...]]:
    groups: list[list[TablePiece]] = []
    filled = _ENOUGH
    for count, piece in found:
        if filled >= _ENOUGH:
            groups.append([])
            filled = 0
        groups[-1].append(piece)
        filled += count
    return [tuple(each) for each in groups]


def _with_table(each: TablePiece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    own = [name for name in columns if name != _TABLE] or ["snapshot_id"]
    for batch in each.snapshots.read(each.piece, own):
        named = pa.repeat(pa.scalar(each.table, pa.string()), len(batch))
        arrays = [named if name == _TABLE else batch.column(name) for name in columns]
        yield pa.record_batch(arrays, names=list(columns))


@dataclass(frozen=True, slots=True)
class RunsOfLake:
    """The recorded runs of every table, read while planning."""

    config: str | None = None
    home: str | None = field(default=None, repr=False)
    whole: bool = False

    @property
    def schema(self) -> pa.Schema:
        return RUNS

    def pieces(self, bounds: TimeBounds) -> Sequence[Piece]:
        with at_home(self.home, self.config) as config:
            places = open_places(config)
            found = [each for _, runs in _of_each(places, Runs(places).of_table, self.whole) for each in runs]
        return [run_rows([each.to_json() for each in found])]

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        assert isinstance(piece, Ready)
        yield from piece.read(None, columns)


OF_LAKE: dict[str, Callable[[str | None, str | None, bool], Relation]] = {
    "snapshots": SnapshotsOfLake,
    "runs": RunsOfLake,
}
