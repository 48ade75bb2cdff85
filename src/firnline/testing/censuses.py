"""Small worlds for a census: a table, its neighbour, and strays of every class whose class is known beforehand."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from firnline.formats.iceberg.names import DOCUMENT_NAMES, places_of
from firnline.formats.iceberg.table import IcebergFormat
from firnline.formats.sorting import Sorting
from firnline.model.files import File, FileKind, Root, Tally, Totals
from firnline.model.locations import join
from firnline.ops.runs.plan import roots
from firnline.ports.engines import FILE_COLUMNS, Census, Engine, ServerRoots
from firnline.ports.listings import VICTIM_COLUMNS, ObjectClass
from firnline.ports.stores import Read
from firnline.stores.ranges import ObjectRanges
from firnline.testing.tables import SmallTable

CUTOFF_MS = 4_000_000_000_000
"""Far ahead: a file can be dated later than the kernel knows it, never earlier."""
OLD_MS, YOUNG_MS = CUTOFF_MS - 1, CUTOFF_MS

STRAYS = {
    "data/lost.parquet": (OLD_MS, ObjectClass.VICTIM),
    "data/day=1/lost more.orc": (OLD_MS, ObjectClass.VICTIM),
    "data/_day=1/lost.parquet": (OLD_MS, ObjectClass.VICTIM),
    "data/vectors.puffin": (OLD_MS, ObjectClass.VICTIM),
    "metadata/snap-1-lost.avro": (OLD_MS, ObjectClass.VICTIM),
    "metadata/lost-m0.avro": (OLD_MS, ObjectClass.VICTIM),
    "metadata/lost.metadata.json": (OLD_MS, ObjectClass.VICTIM),
    "data/young.parquet": (YOUNG_MS, ObjectClass.YOUNG),
    "metadata/young.metadata.json": (YOUNG_MS, ObjectClass.YOUNG),
    "data/ageless.parquet": (0, ObjectClass.UNKNOWN_AGE),
    "data/notes.txt": (OLD_MS, ObjectClass.UNKNOWN_KIND),
    "data/_temporary/0/lost.parquet": (OLD_MS, ObjectClass.UNKNOWN_KIND),
    "elsewhere/lost.parquet": (OLD_MS, ObjectClass.OUTSIDE),
    "elsewhere/strange.metadata.json": (OLD_MS, ObjectClass.OUTSIDE),
    "_firnline/runs/1/plan.json": (OLD_MS, ObjectClass.OWN_RECORDS),
    "neighbour/data/lost.parquet": (OLD_MS, ObjectClass.ANOTHER_TABLE),
}
"""Files that nothing names, below a table's folder: when they were written, and their class."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A census's whole answer as plain values, so that two engines' answers can be compared."""

    listed: Tally
    classes: dict[ObjectClass, Tally]
    victims: dict[str, tuple[str, int, int | None]]
    victim_totals: Totals
    documents: set[str]
    units: set[str]
    near_misses: tuple[tuple[str, str], ...]
    units_opened: int

    @property
    def files(self) -> dict[ObjectClass, int]:
        """How many objects each class has, without those that have none."""
        return {each: tally.files for each, tally in self.classes.items() if tally.files}


@dataclass
class CensusWorld:
    """A folder of real files: a table in it, perhaps a neighbour inside the table's folder, and strays."""

    table: SmallTable
    neighbour: SmallTable | None = None
    strays: dict[str, ObjectClass] = field(default_factory=dict)

    def stray(self, name: str, modified_ms: int = OLD_MS, of: ObjectClass = ObjectClass.VICTIM, size: int = 3) -> str:
        """Returns the key of a new file that no table names."""
        path = Path(self.table.location.removeprefix("file://")) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
        self.strays[join(self.table.location, name)] = of
        return join(self.table.location, name)

    def every_stray(self) -> None:
        for name, (modified_ms, of) in STRAYS.items():
            self.stray(name, modified_ms, of)

    @property
    def sort(self) -> Sorting:
        return Sorting(
            CUTOFF_MS,
            places_of(self.table.location, self.table.properties),
            DOCUMENT_NAMES,
            others=(join(self.table.location, "neighbour"),),
            own=(join(self.table.location, "_firnline"),),
        )

    def needs(self, store: Read) -> list[ServerRoots]:
        """Returns what both tables need, on one server."""
        return [ServerRoots(list(self.roots(store)), IcebergFormat(store).expand)]

    def roots(self, store: Read) -> Iterator[Root]:
        """Yields what both tables need; call `publish` on them first."""
        for table, needed in ((self.table, True), (self.neighbour, False)):
            if table is not None and table.documents:
                table_format = IcebergFormat(store)
                state = table_format.load("table", table.documents[-1])
                yield from (Root(root.file, needed) for root in roots(table_format, state, set()))
                for path in (*table.documents, table.hint):
                    yield Root(File(FileKind.METADATA, path), needed)

    def count(self, engine: Engine, store: Read, more: Iterable[Root] = (), pieces: int = 4) -> Counted:
        """Returns what the engine says of the world as it is now."""
        source = ObjectRanges()
        listing = engine.list(source.split(self.table.location, pieces), source)
        every = [*self.roots(store), *more]
        try:
            return counted(
                listing.all, engine.census(listing, [ServerRoots(every, IcebergFormat(store).expand)], self.sort)
            )
        finally:
            listing.close()

    def expected(self) -> dict[ObjectClass, Tally]:
        """Returns what the writers remember of every file that is there, class by class."""
        sums = {each: Tally() for each in ObjectClass}
        for path in Path(self.table.location.removeprefix("file://")).rglob("*"):
            if path.is_file():
                of = self.strays.get(f"file://{path}") or self._class_of_named(f"file://{path}")
                sums[of] += Tally(1, path.stat().st_size)
        return sums

    def _class_of_named(self, key: str) -> ObjectClass:
        for table, of in ((self.table, ObjectClass.NEEDED), (self.neighbour, ObjectClass.ANOTHER_TABLE)):
            if table is not None and (key in table.made or key in (*table.documents, table.hint)):
                return of
        raise KeyError(key)


def counted(listed: Tally, census: Census) -> Counted:
    """Returns a census as plain values and closes it."""
    try:
        victims = _rows(census.victim_batches(), VICTIM_COLUMNS)
        return Counted(
            listed,
            dict(census.classes),
            {row["key"]: (row["kind"], row["size"], row["modified_ms"]) for row in victims},
            census.victims,
            {row["key"] for row in _rows(census.document_batches(), VICTIM_COLUMNS)},
            {row["key"] for row in _rows(census.unit_batches(), FILE_COLUMNS)},
            tuple(census.near_misses),
            census.units_opened,
        )
    finally:
        census.close()


def _rows(batches: Iterator[pa.RecordBatch], columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """Returns all rows. One that comes twice is an error: it would be counted and deleted twice."""
    rows: list[dict[str, Any]] = []
    for batch in batches:
        assert tuple(batch.schema.names) == columns
        rows += batch.to_pylist()
    assert len({row["identity"] for row in rows}) == len(rows)
    return rows
