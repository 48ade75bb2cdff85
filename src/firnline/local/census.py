"""The census in this process: look-ups in Arrow arrays, one for what is needed, one for what is another's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import StoreError
from firnline.local.rows import in_batches
from firnline.model.files import FileKind, Tally, Totals
from firnline.ports.engines import FILE_COLUMNS
from firnline.ports.listings import VICTIM_COLUMNS, ObjectClass, Sort

BATCH_ROWS = 65_536
NEAR_MISSES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class LocalCensus:
    """A census whose objects and units are Arrow tables in this process."""

    objects: pa.Table
    units: pa.Table
    near_misses: Sequence[tuple[str, str]]

    @property
    def classes(self) -> Mapping[ObjectClass, Tally]:
        sums = _sums(self.objects, "class")
        return {each: sums.get(each.value, Tally()) for each in ObjectClass}

    @property
    def newest_ms(self) -> int | None:
        newest: int | None = pc.max(self.objects.column("modified_ms")).as_py()
        return newest

    @property
    def victims(self) -> Totals:
        return Totals.of((FileKind(kind), tally) for kind, tally in _sums(self._victims(), "kind").items())

    @property
    def units_opened(self) -> int:
        return len(self.units)

    def victim_batches(self) -> Iterator[pa.RecordBatch]:
        return _batches(self._victims(), VICTIM_COLUMNS)

    def document_batches(self) -> Iterator[pa.RecordBatch]:
        is_metadata = pc.equal(self.objects.column("kind"), FileKind.METADATA.value)
        documents = self.objects.filter(pc.and_not(is_metadata, self.objects.column("is_reached")))
        return _batches(documents.sort_by("identity"), VICTIM_COLUMNS)

    def unit_batches(self) -> Iterator[pa.RecordBatch]:
        return _batches(self.units, FILE_COLUMNS)

    def close(self) -> None:
        return None

    def _victims(self) -> pa.Table:
        return self.objects.filter(pc.equal(self.objects.column("class"), ObjectClass.VICTIM.value))


def take(listed: pa.Table, reached: pa.Table, kinds: Sequence[FileKind], sort: Sort) -> LocalCensus:
    """Returns the census of what was listed against all files that roots reach. `kinds`: those of units."""
    objects = sorted_objects(listed, sort)
    reached = named(reached, sort)
    names = objects.column("identity")
    needed = _is_in(names, reached.filter(reached.column("needed")).column("identity"))
    same = _is_in(names, reached.column("identity"))
    near = _is_in(objects.column("path"), reached.column("path"))
    return counted(objects, (needed, same, near), reached, units_of(reached, kinds))


def counted(objects: pa.Table, told: Sequence[pa.Array], reached: pa.Table, units: pa.Table) -> LocalCensus:
    """Returns the census of sorted objects. Told of each: whether it is needed, whether anything reaches it, and
    whether anything that is reached has its path.
    """
    classed = _classed(objects, *told)
    return LocalCensus(classed, units, _near_misses(classed, reached))


def units_of(reached: pa.Table, kinds: Sequence[FileKind]) -> pa.Table:
    """Returns those of the files that are units."""
    return reached.filter(pc.is_in(reached.column("kind"), pa.array([kind.value for kind in kinds], pa.string())))


def sorted_objects(listed: pa.Table, sort: Sort) -> pa.Table:
    """Returns what was listed as it is sorted. Raises StoreError where two rows are one object."""
    objects = pa.concat_tables(list(_in_parts(listed, sort)) or [_sorted(listed, sort)])
    _refuse_doubles(objects)
    return objects


def _in_parts(listed: pa.Table, sort: Sort) -> Iterator[pa.Table]:
    for start in range(0, len(listed), BATCH_ROWS):
        yield _sorted(listed.slice(start, BATCH_ROWS), sort)


def _sorted(listed: pa.Table, sort: Sort) -> pa.Table:
    (batch,) = listed.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], listed.schema)]
    return pa.Table.from_batches([sort(batch)])


def named(reached: pa.Table, sort: Sort) -> pa.Table:
    """Returns what roots reach, each with the name it is compared by and its path."""
    chunks = reached.column("identity").chunks
    names = pa.chunked_array([sort.names(chunk) for chunk in chunks], pa.string())
    paths = pa.chunked_array([sort.paths(chunk) for chunk in names.chunks], pa.string())
    place = reached.schema.get_field_index("identity")
    return reached.set_column(place, "identity", names).append_column("path", paths)


def _classed(objects: pa.Table, needed: pa.Array, same: pa.Array, near: pa.Array) -> pa.Table:
    """Returns the objects in their classes, with `is_reached`."""
    sorted_as = objects.column("class")
    near_victim = pc.and_(near, pc.equal(sorted_as, ObjectClass.VICTIM.value))
    of = pc.if_else(near_victim, ObjectClass.NEAR_MISS.value, sorted_as)
    of = pc.if_else(same, ObjectClass.ANOTHER_TABLE.value, of)
    of = pc.if_else(needed, ObjectClass.NEEDED.value, of)
    place = objects.schema.get_field_index("class")
    return objects.set_column(place, "class", of).append_column("is_reached", same)


def _is_in(values: pa.ChunkedArray, among: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.is_in(values, value_set=among.combine_chunks())


def _near_misses(objects: pa.Table, reached: pa.Table) -> tuple[tuple[str, str], ...]:
    near = objects.filter(pc.equal(objects.column("class"), ObjectClass.NEAR_MISS.value))
    if not len(near):
        return ()
    shown = near.sort_by("key").slice(0, NEAR_MISSES_SHOWN)
    there = reached.filter(_is_in(reached.column("path"), shown.column("path")))
    keys = dict(zip(there.column("path").to_pylist(), there.column("key").to_pylist(), strict=True))
    pairs = zip(shown.column("key").to_pylist(), shown.column("path").to_pylist(), strict=True)
    return tuple((key, keys[path]) for key, path in pairs)


def _refuse_doubles(objects: pa.Table) -> None:
    """Raises where two rows are one object."""
    names = objects.column("identity")
    if pc.count_distinct(names).as_py() == len(names):
        return
    counts = objects.group_by("identity").aggregate([([], "count_all")])
    twice = counts.filter(pc.greater(counts.column("count_all"), 1)).column("identity")[0].as_py()
    raise StoreError(f"the listing names {twice!r} twice", "a folder marker may have the name of a file: remove it")


def _sums(rows: pa.Table, by: str) -> dict[str, Tally]:
    sums = rows.group_by(by).aggregate([("size", "sum"), ([], "count_all")])
    columns = (sums.column(name).to_pylist() for name in (by, "count_all", "size_sum"))
    return {value: Tally(count, size or 0) for value, count, size in zip(*columns, strict=True)}


def _batches(rows: pa.Table, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    return in_batches(rows.select(list(columns)), BATCH_ROWS)
