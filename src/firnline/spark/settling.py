"""The end of a walk on Spark: the rows of a file meet in one task, fold into who reaches it, and it is judged there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.memory import keep_freed_memory
from firnline.model.files import FileKind
from firnline.model.spans import Numbers, SpanEntries, above_zero, numbers
from firnline.ports.engines import Territory
from firnline.ports.stores import AS_CALLED
from firnline.spark.executors.beginning import begin_task
from firnline.spark.judged import JUDGED_DDL, OTHERS, JudgedFiles, judged_lost, may_be_local
from firnline.spark.packets import LOST, by_number, each_packet, unpacked
from firnline.spark.telling import lost_walks, told
from firnline.spark.travelling import KINDS, Parts, spans_of
from firnline.walking.axis import BY_KEPT, BY_OTHERS, BY_OWN, Axis, Reach
from firnline.walking.opening import come_too_late
from firnline.walking.verdicts import verdicts

_LATE = told(come_too_late())
_VIRTUAL = pa.scalar(KINDS.index(FileKind.VIRTUAL.value).as_py(), pa.int8())
_ONCE = [("row", "min"), ("key", "min"), ("kind", "min"), ("size", "max")]


def settled(rows: DataFrame, parts: Parts, axis: Axis, territories: Sequence[Territory]) -> DataFrame:
    """Returns each file that a table reaches once, with the verdict on it: in packets, by table, verdict and kind."""
    together = rows.repartitionById(parts.all, F.col("target")).sortWithinPartitions("slice")
    return together.mapInArrow(Settling(axis, territories), JUDGED_DDL)


class Settling:
    """Folds and judges the files of each slice; memory holds one slice, and what was judged and is still to be packed.

    All rows of a table that have one path are in one slice, so all that may be one file, or a near miss of it, meets.
    """

    def __init__(self, axis: Axis, territories: Sequence[Territory]) -> None:
        self._axis = axis
        # Real names are looked at where the folders are: executors compare what files are called.
        self._territories = [replace(each, real=AS_CALLED) for each in territories]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        keep_freed_memory()
        judged = JudgedFiles([may_be_local(each) for each in self._territories])
        lost: dict[int, str] = {}
        late: dict[int, str] = {}
        for slice_, of_slice in groupby(chain.from_iterable(map(each_packet, batches)), key=itemgetter(0)):
            if slice_ == LOST:
                for _, data in of_slice:
                    lost |= lost_walks(data)
                yield judged_lost(lost)  # before any file: a reader that wants a few may read no further
                continue
            rows = pa.concat_tables([unpacked(data) for _, data in of_slice], promote_options="default")
            walks, portions = by_number(rows, numbers(rows.column("walk").to_numpy()))
            for walk, portion in zip(walks.tolist(), portions, strict=True):
                if pc.any(portion.column("opens")).as_py():
                    late[walk] = _LATE
                yield from judged.add(walk, self._of_walk(walk, portion))
        yield from judged.rest()
        yield judged_lost(late)

    def _of_walk(self, walk: int, rows: pa.Table) -> pa.Table:
        """Returns one row per file that the walk reaches, with the verdict on it."""
        names = rows.column("identity").combine_chunks().dictionary_encode()
        files = numbers(names.indices.to_numpy(zero_copy_only=False))
        reach = self._reach(walk, rows, files, len(names.dictionary))[files]
        stays = (reach > 0) & _adds(rows)
        table = rows.select(["identity", "key", "size", "kind"]).append_column("reach", pa.array(reach))
        if not stays.all():
            table, files = table.filter(pa.array(stays)), files[stays]
        return self._judged(walk, _one_per_file(table, files))

    def _reach(self, walk: int, rows: pa.Table, files: Numbers, count: int) -> Reach:
        """Returns by whom each file is reached."""
        found = np.zeros(count, dtype=np.uint8)
        np.bitwise_or.at(found, files, rows.column("reach").to_numpy().astype(np.uint8))
        if "spans" in rows.schema.names:
            place, start, end = spans_of(rows.column("spans").combine_chunks())
            fold, op = (pc.fill_null(rows.column(name), 0).to_numpy() for name in ("fold", "op"))
            entries = SpanEntries(files[place], numbers(fold)[place], numbers(op)[place], start, end)
            alive = above_zero(count, entries)
            walks = np.full(len(alive.owner), walk, dtype=np.int64)
            np.bitwise_or.at(found, alive.owner, self._axis.reach(walks, alive.start, alive.end))
        return found

    def _judged(self, walk: int, rows: pa.Table) -> pa.Table:
        reach = rows.column("reach").to_numpy()
        own, theirs = (reach & BY_OWN) > 0, (reach & BY_OTHERS) > 0
        files = rows.append_column("needed", pa.array((reach & BY_KEPT) > 0))
        elsewhere = rows.filter(pa.array(theirs)) if theirs.any() else None
        judged = verdicts(files, self._territories[walk], elsewhere, _VIRTUAL)
        verdict = pc.if_else(pa.array(own), judged.column("verdict"), pa.scalar(OTHERS, pa.int8()))
        return rows.select(["identity", "key", "size", "kind"]).append_column("verdict", verdict)


def _adds(rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tells which rows say that a file is there, and not that it is taken away."""
    if "op" not in rows.schema.names:
        return np.ones(len(rows), dtype=bool)
    adds: np.ndarray[tuple[int], np.dtype[np.bool_]] = pc.fill_null(rows.column("op"), 1).to_numpy() > 0
    return adds


def _one_per_file(rows: pa.Table, files: Numbers) -> pa.Table:
    """Returns one row per file, its bytes counted once. Most have one row as it is."""
    if len(np.unique(files)) == len(rows):
        return rows
    spelled = rows.set_column(1, "key", pc.coalesce(rows.column("key"), rows.column("identity")))
    counted = spelled.append_column("file", pa.array(files)).append_column("row", pa.array(np.arange(len(rows))))
    grouped = counted.group_by("file", use_threads=False).aggregate(_ONCE)
    firsts = rows.take(grouped.column("row_min"))
    found = {"identity": firsts.column("identity"), "reach": firsts.column("reach")}
    found |= {name: grouped.column(f"{name}_{how}") for name, how in _ONCE if name != "row"}
    return pa.table({name: found[name] for name in rows.column_names})
