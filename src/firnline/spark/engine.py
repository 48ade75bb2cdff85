"""The Spark engine behind the Engine port."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from weakref import finalize

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from firnline.model.files import FileKind, Root, Tally, Totals
from firnline.ports.engines import FILE_COLUMNS, SPARED_REASONS, Elsewhere, Listing, Territory, alike, root_columns
from firnline.ports.expanding import Expand
from firnline.ports.listings import KeyRange, ListRanges, Sort
from firnline.ports.progress import Progress, Silent
from firnline.spark.census import SparkCensus, take
from firnline.spark.folding import root_table, walk_folding
from firnline.spark.listing import SparkListing, list_pieces, refuse_two_roads
from firnline.spark.opening import ROWS, raise_told
from firnline.spark.pipeline import KEPT, UNREADABLE, VICTIM, judge, stem, walk
from firnline.spark.spread import placed, spread_of
from firnline.spark.streaming import described, streamed

_SUMMARY = ("verdict", "kind", "count", "bytes", "unsized", "error")
_ONCE = {"key": "min", "size": "max", "kind": "min", "opens": "max", "needed": "max", "expects": "max"}
Summary = tuple[tuple[str, str, int, int, int, str | None], ...]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class SparkSurvey:
    """A survey whose files stay on the cluster; totals were computed once, batches are streamed.

    Spark holds them for as long as the session lives, which may be months, and the session is another program's: so
    they go with `close`, or at the latest when nobody holds this any more.
    """

    files: DataFrame
    judged: DataFrame
    summary: Summary
    units_opened: int
    of: str = ""

    @property
    def kept(self) -> Totals:
        return self._totals(KEPT)

    @property
    def victims(self) -> Totals:
        return self._totals(VICTIM)

    @property
    def spared(self) -> dict[str, Tally]:
        tallies = {reason: self._totals(reason).all for reason in SPARED_REASONS}
        return {reason: tally for reason, tally in tallies.items() if tally.files}

    @property
    def unsized(self) -> int:
        return sum(unsized for verdict, _, _, _, unsized, _ in self.summary if verdict == VICTIM)

    def victim_batches(self) -> Iterator[pa.RecordBatch]:
        return self._batches(VICTIM, tuple(FileKind))

    def kept_batches(self, kinds: Collection[FileKind] = tuple(FileKind)) -> Iterator[pa.RecordBatch]:
        return self._batches(KEPT, kinds)

    def close(self) -> None:
        self.files.unpersist()

    def _totals(self, verdict: str) -> Totals:
        return Totals.of(
            (FileKind(kind), Tally(n, size)) for said, kind, n, size, *_ in self.summary if said == verdict
        )

    def _batches(self, verdict: str, kinds: Collection[FileKind]) -> Iterator[pa.RecordBatch]:
        """Yields the files of a verdict and of these kinds. Raises what an executor could not read where it had to walk
        once more: what was held in memory is lost with an executor, and a unit may be out of reach by then.
        """
        wanted = (F.col("verdict") == verdict) & F.col("kind").isin([kind.value for kind in kinds])
        chosen = self.judged.filter(wanted | (F.col("verdict") == UNREADABLE)).select(*FILE_COLUMNS, "error")
        by_kind = self._totals(verdict).by_kind
        for batch in streamed(chosen, sum(by_kind[kind].files for kind in kinds if kind in by_kind), self.of):
            for said in batch.column("error").drop_null().to_pylist():
                raise_told(said)
            yield batch.select(list(FILE_COLUMNS))


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Runs the pipeline on a session that the caller passes in. `of` is the table, for those who watch Spark."""

    session: SparkSession
    progress: Progress = field(default_factory=Silent)
    of: str = ""

    @property
    def name(self) -> str:
        return "spark"

    def survey(
        self, roots: Iterable[Root], expand: Expand, territory: Territory, elsewhere: Elsewhere | None = None
    ) -> SparkSurvey:
        theirs = None if elsewhere is None else self._needed_by_others(elsewhere)
        files = self._walk(roots, expand).persist()
        try:
            with described(self.session, "walking, and judging every file", self.of):
                judged, summary = _judged(files, territory, theirs)
            _raise_unreadable(summary)
            if any(verdict == VICTIM for verdict, *_ in summary):
                with described(self.session, "looking where folders really are", self.of):
                    refuse_two_roads(files, theirs, territory)
        except BaseException:
            files.unpersist()
            raise
        opened = sum(count for _, kind, count, *_ in summary if kind in {k.value for k in expand.order})
        survey = SparkSurvey(files, judged, summary, opened, self.of)
        finalize(survey, files.unpersist).atexit = False
        return survey

    def _needed_by_others(self, elsewhere: Elsewhere) -> DataFrame:
        """Returns the files that other tables need, walked once and kept on disk: a walk that is made again because an
        executor was lost could miss a unit, and then a file that another table needs would be a victim.
        """
        with described(self.session, "walking what other tables need", self.of):
            found = self._walk(elsewhere.roots, elsewhere.expand).select("identity", "error")
            kept = found.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
            for row in kept.filter("error is not null").limit(1).collect():
                raise_told(row["error"])
        return kept

    def list(self, pieces: Iterable[KeyRange], source: ListRanges) -> SparkListing:
        self.progress.step("listing on Spark", 0, None)
        return list_pieces(self.session, pieces, source, self.of)

    def census(self, listing: Listing, roots: Iterable[Root], expand: Expand, sort: Sort) -> SparkCensus:
        if not isinstance(listing, SparkListing):
            raise TypeError("a listing of another engine")
        with described(self.session, "holding the listing against all needs", self.of):
            return take(listing.rows, self._walk(roots, expand), expand.order, sort, self.of)

    def _walk(self, roots: Iterable[Root], expand: Expand) -> DataFrame:
        """Returns one row per file that the roots reach; nothing is opened before the rows are asked for."""
        if expand.folds:
            return self._walk_folding(alike(roots), expand)
        start = _root_table(roots)
        spread = spread_of(self.session, len(start))
        self.progress.step("walking on Spark", 0, None)
        return walk(self.session.createDataFrame(placed(start, spread.tasks)), expand, spread)

    def _walk_folding(self, roots: Sequence[Root], expand: Expand) -> DataFrame:
        start, kept = root_table(roots)
        spread = spread_of(self.session, len(start))
        self.progress.step("walking on Spark", 0, None)
        return walk_folding(self.session.createDataFrame(placed(start, spread.tasks)), expand, spread, kept)


def _root_table(roots: Iterable[Root]) -> pa.Table:
    """Returns the roots, one row each: needed if any root of the same name is."""
    rows = pa.table(root_columns(roots), schema=pa.schema(list(ROWS)[:-1]))
    once = rows.group_by("identity", use_threads=False).aggregate(list(_ONCE.items()))
    named = once.rename_columns([name.removesuffix("_min").removesuffix("_max") for name in once.column_names])
    return named.append_column("error", pa.nulls(len(named), pa.string())).select(ROWS.names).cast(ROWS)


def _judged(files: DataFrame, territory: Territory, theirs: DataFrame | None) -> tuple[DataFrame, Summary]:
    """Returns the files with their verdicts, and the sums. Near misses are only looked for where there can be any."""
    judged = judge(files, territory, False, theirs)
    summary, stems = _summary(judged)
    if len(stems) < 2:
        return judged, summary
    judged = judge(files, territory, True, theirs)
    return judged, _summary(judged)[0]


def _summary(judged: DataFrame) -> tuple[Summary, set[str]]:
    """Returns the sums, and the first and last scheme and authority by the alphabet: one where all files have one."""
    rows = (
        judged.groupBy("verdict", "kind")
        .agg(
            F.count("*").alias("count"),
            F.coalesce(F.sum("size"), F.lit(0)).alias("bytes"),
            (F.count("*") - F.count("size")).alias("unsized"),
            F.max("error").alias("error"),
            F.min(stem()).alias("first"),
            F.max(stem()).alias("last"),
        )
        .collect()
    )
    summary = tuple(tuple(row[name] for name in _SUMMARY) for row in rows)
    return summary, {row[name] for row in rows for name in ("first", "last")}


def _raise_unreadable(summary: Summary) -> None:
    for verdict, *_, said in summary:
        if verdict == UNREADABLE:
            raise_told(said)
