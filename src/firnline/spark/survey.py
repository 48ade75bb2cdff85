"""What a walk on Spark found: its files stay on the cluster, sums are here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import finalize

import pyarrow as pa
from pyspark.sql import DataFrame

from firnline.errors import FirnlineError
from firnline.model.files import FileKind, Tally, Totals
from firnline.spark.judged import OTHERS, UNREADABLE
from firnline.spark.spool import Spool
from firnline.spark.telling import error_of
from firnline.spark.travelling import KINDS
from firnline.walking.verdicts import KEPT, VERDICTS, VICTIM, ByVerdict

_VERDICTS = {name: number for number, name in enumerate(VERDICTS)}
_KINDS = {name: number for number, name in enumerate(KINDS.to_pylist())}


@dataclass(slots=True)
class Sums:
    """The sums of one walk by verdict and kind: count, bytes and how many have no size; and why it is not judged.

    `folders` are local folders of its files, each with a verdict; more of them may be known to the cluster alone.
    """

    rows: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    folders: set[tuple[int, str]] = field(default_factory=set)
    has_more_folders: bool = False
    problem: FirnlineError | None = None

    def of(self, verdict: str) -> dict[FileKind, tuple[int, int, int]]:
        wanted = ((kind, sums) for (said, kind), sums in self.rows.items() if said == _VERDICTS[verdict])
        return {FileKind(KINDS[kind].as_py()): sums for kind, sums in wanted}

    @property
    def has_victims(self) -> bool:
        return bool(self.of(VICTIM))

    def add(self, row: Mapping[str, Any]) -> None:
        """Takes what is said of one packet."""
        if row["verdict"] == UNREADABLE:
            self.problem = self.problem or error_of(row["error"])
            return
        self.folders.update((row["verdict"], folder) for folder in row["folders"] or ())
        self.has_more_folders |= row["folders"] is None
        if row["verdict"] != OTHERS:
            of = row["verdict"], row["kind"]
            count, size, unsized = self.rows.get(of, (0, 0, 0))
            self.rows[of] = count + row["count"], size + row["bytes"], unsized + row["unsized"]


def summed(files: DataFrame, walks: int) -> list[Sums]:
    """Returns the sums of each walk; the walk itself is what this waits for."""
    found = [Sums() for _ in range(walks)]
    for row in files.select("walk", "verdict", "kind", "count", "bytes", "unsized", "folders", "error").collect():
        found[row["walk"]].add(row)
    return [Sums(problem=each.problem) if each.problem else each for each in found]


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
        yield from self.held.spools.batches(self.walk, _VERDICTS[verdict], numbers, count, self.of)
