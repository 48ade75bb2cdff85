"""What a walk on Spark found: its files stay on the cluster, sums are here."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from weakref import finalize

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.errors import FirnlineError
from firnline.model.files import FileKind, Tally, Totals
from firnline.ports.engines import FILE_COLUMNS
from firnline.spark.settling import OTHERS, UNREADABLE
from firnline.spark.spool import Spool
from firnline.spark.telling import error_of
from firnline.spark.travelling import KINDS
from firnline.walking.verdicts import KEPT, VERDICTS, VICTIM, ByVerdict

_VERDICTS = {name: number for number, name in enumerate(VERDICTS)}
_KINDS = {name: number for number, name in enumerate(KINDS.to_pylist())}


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of one walk by verdict and kind: count, bytes and how many have no size; and why it is not judged."""

    rows: dict[tuple[int, int], tuple[int, int, int]]
    problem: FirnlineError | None = None

    def of(self, verdict: str) -> dict[FileKind, tuple[int, int, int]]:
        wanted = ((kind, sums) for (said, kind), sums in self.rows.items() if said == _VERDICTS[verdict])
        return {FileKind(KINDS[kind].as_py()): sums for kind, sums in wanted}

    @property
    def has_victims(self) -> bool:
        return bool(self.of(VICTIM))


def summed(files: DataFrame, walks: int) -> list[Sums]:
    """Returns the sums of each walk; the walk itself is what this waits for."""
    rows = (
        files.groupBy("walk", "verdict", "kind")
        .agg(
            F.count("*").alias("count"),
            F.coalesce(F.sum("size"), F.lit(0)).alias("bytes"),
            (F.count("*") - F.count("size")).alias("unsized"),
            F.max("error").alias("error"),
        )
        .collect()
    )
    found = [Sums({}) for _ in range(walks)]
    for row in rows:
        if row["verdict"] == UNREADABLE:
            found[row["walk"]] = Sums({}, error_of(row["error"]))
    for row in rows:
        if row["verdict"] not in (UNREADABLE, OTHERS):
            found[row["walk"]].rows[row["verdict"], row["kind"]] = (row["count"], row["bytes"], row["unsized"])
    return found


class Held:
    """The judged files of some walks, which Spark holds until each of these is closed.

    It would hold them for as long as the session lives, which may be months, and the session is another program's: so
    they go at the latest when nobody holds this any more.
    """

    def __init__(self, files: DataFrame, walks: int) -> None:
        self.files = files
        self.walks = walks
        self.spools = Spool(files, walks)
        self._open = set(range(walks))
        finalize(self, files.unpersist).atexit = False

    def close(self, walk: int) -> None:
        self._open.discard(walk)
        if not self._open:
            self.drop()

    def drop(self) -> None:
        self.spools.close()
        self.files.unpersist()


@dataclass(frozen=True, slots=True)
class SparkSurvey(ByVerdict):
    """A survey whose files stay on the cluster; totals were computed once, batches are streamed."""

    held: Held
    walk: int
    sums: Sums
    units: frozenset[str]
    of: str = ""

    @property
    def units_opened(self) -> int:
        found = (self.sums.of(verdict).items() for verdict in VERDICTS)
        return sum(count for sums in found for kind, (count, _, _) in sums if kind.value in self.units)

    @property
    def unsized(self) -> int:
        return sum(unsized for _, _, unsized in self.sums.of(VICTIM).values())

    def victim_batches(self) -> Iterator[pa.RecordBatch]:
        return self._batches(VICTIM, tuple(FileKind))

    def kept_batches(self, kinds: Collection[FileKind] = tuple(FileKind)) -> Iterator[pa.RecordBatch]:
        return self._batches(KEPT, kinds)

    def close(self) -> None:
        self.held.close(self.walk)

    def _totals(self, verdict: str) -> Totals:
        return Totals.of((kind, Tally(n, size)) for kind, (n, size, _) in self.sums.of(verdict).items())

    def _batches(self, verdict: str, kinds: Collection[FileKind]) -> Iterator[pa.RecordBatch]:
        """Yields the files of a verdict and of these kinds. Raises what an executor could not read where it had to walk
        once more: what was held in memory is lost with an executor, and a unit may be out of reach by then.
        """
        sums = self.sums.of(verdict)
        count = sum(sums[kind][0] for kind in kinds if kind in sums)
        if not count:
            return
        numbers = sorted(_KINDS[kind.value] for kind in kinds)
        for batch in self.held.spools.batches(self.walk, _VERDICTS[verdict], numbers, count, self.of):
            yield _as_files(batch)


def _as_files(batch: pa.RecordBatch) -> pa.RecordBatch:
    kinds = KINDS.take(batch.column("kind").cast(pa.int32()))
    return batch.set_column(batch.schema.get_field_index("kind"), "kind", kinds).select(list(FILE_COLUMNS))
