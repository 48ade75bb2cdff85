"""Asking an engine about a small table, and comparing its answer with what the table's writer remembers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from firnline.formats.iceberg.table import IcebergFormat
from firnline.model.files import FileKind, Root, Tally, Totals
from firnline.ops.runs.plan import roots
from firnline.ports.engines import FILE_COLUMNS, Engine, ServerRoots, Survey, Territory
from firnline.ports.stores import Read
from firnline.testing.tables import SmallTable


@dataclass(frozen=True, slots=True)
class Found:
    """A survey's whole answer as plain values, so that two engines' answers can be compared."""

    victims: dict[str, tuple[str, int]]
    kept: dict[str, tuple[str, int]]
    victim_totals: Totals
    kept_totals: Totals
    spared: dict[str, Tally]
    units_opened: int


def survey(
    engine: Engine,
    table: SmallTable,
    expired: Collection[int],
    store: Read,
    *,
    outside: bool = False,
    holes: tuple[str, ...] = (),
    elsewhere: Sequence[ServerRoots] = (),
) -> Found:
    """Returns what the engine says of the table as it is now. `outside`: files elsewhere may go too."""
    table_format = IcebergFormat(store)
    state = table_format.load("table", table.publish())
    gone = {str(each) for each in expired}
    territory = Territory(None if outside else state.owned, holes)
    return found(engine.survey(roots(table_format, state, gone), table_format.expand, territory, elsewhere))


def needed_by(table: SmallTable, store: Read, server: str = "") -> ServerRoots:
    """Returns all that a table needs, as another table is asked for it."""
    table_format = IcebergFormat(store)
    state = table_format.load("another", table.publish())
    return ServerRoots([Root(file, True) for _, file in table_format.roots(state)], table_format.expand, server)


def found(answer: Survey) -> Found:
    """Returns a survey as plain values and closes it."""
    try:
        return Found(
            files_of(answer.victim_batches()),
            files_of(answer.kept_batches()),
            answer.victims,
            answer.kept,
            answer.spared,
            answer.units_opened,
        )
    finally:
        answer.close()


def expected(table: SmallTable, expired: Collection[int]) -> Found:
    """Returns what the table's writer remembers: what a right answer is when files elsewhere may go too."""
    kept = {path for each in table.changes.keys() - set(expired) for path in table.reachable(each)}
    victims = table.victims(expired)
    units = sum(table.made[path].kind in (FileKind.MANIFEST, FileKind.MANIFEST_LIST) for path in kept | victims)
    return Found(
        _remembered(table, victims), _remembered(table, kept), totals(table, victims), totals(table, kept), {}, units
    )


def totals(table: SmallTable, paths: Collection[str]) -> Totals:
    return Totals.of((table.made[path].kind, Tally(1, table.made[path].size)) for path in paths)


def _remembered(table: SmallTable, paths: Collection[str]) -> dict[str, tuple[str, int]]:
    return {path: (table.made[path].kind.value, table.made[path].size) for path in paths}


def files_of(batches: Iterator[pa.RecordBatch]) -> dict[str, tuple[str, int]]:
    """Returns the files of all batches. A file that comes twice is an error: it would be counted and deleted twice."""
    rows: dict[str, tuple[str, int]] = {}
    for batch in batches:
        assert tuple(batch.schema.names) == FILE_COLUMNS
        for row in batch.to_pylist():
            assert row["key"] not in rows
            rows[row["key"]] = (row["kind"], row["size"])
    return rows
