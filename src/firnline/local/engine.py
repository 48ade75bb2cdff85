"""The local engine behind the Engine port."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from firnline.local.census import LocalCensus, take
from firnline.local.folding import walk_folding
from firnline.local.judge import KEPT, VICTIM, judged, verdicts
from firnline.local.listing import Lister, LocalListing
from firnline.local.rows import in_batches, one_per_file, root_rows, split, with_need
from firnline.model.files import File, FileKind, Root, Tally, Totals
from firnline.ports.engines import FILE_COLUMNS, SPARED_REASONS, Elsewhere, Listing, Territory, alike
from firnline.ports.expanding import Expand, Expanded, opener
from firnline.ports.listings import KeyRange, ListRanges, Sort
from firnline.ports.progress import Progress, Silent

BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class LocalSurvey:
    """A survey whose files are one Arrow table in this process."""

    files: pa.Table
    units_opened: int

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
        return int(judged(self.files, VICTIM, ("size",)).column("size").null_count)

    def victim_batches(self) -> Iterator[pa.RecordBatch]:
        return in_batches(judged(self.files, VICTIM, FILE_COLUMNS), BATCH_ROWS)

    def kept_batches(self, kinds: Collection[FileKind] = tuple(FileKind)) -> Iterator[pa.RecordBatch]:
        return in_batches(judged(self.files, KEPT, FILE_COLUMNS, kinds), BATCH_ROWS)

    def close(self) -> None:
        return None

    def _totals(self, verdict: str) -> Totals:
        chosen = judged(self.files, verdict, ("kind", "size"))
        sums = chosen.group_by("kind").aggregate([("size", "sum"), ([], "count_all")])
        rows = zip(*(sums.column(name).to_pylist() for name in ("kind", "count_all", "size_sum")), strict=True)
        return Totals.of((FileKind(kind), Tally(count, size or 0)) for kind, count, size in rows)


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Opens units on threads: reading waits on the store and decoding leaves the interpreter lock alone.

    `most_listed`: a listing of more objects than that raises ListingTooLarge.
    """

    threads: int = 8
    progress: Progress = field(default_factory=Silent)
    most_listed: int | None = None

    @property
    def name(self) -> str:
        return "local"

    def survey(
        self, roots: Iterable[Root], expand: Expand, territory: Territory, elsewhere: Elsewhere | None = None
    ) -> LocalSurvey:
        theirs = None if elsewhere is None else self._walk(elsewhere.roots, elsewhere.expand)[0]
        files, opened = self._walk(roots, expand)
        return LocalSurvey(verdicts(files, territory, theirs), opened)

    def list(self, pieces: Iterable[KeyRange], source: ListRanges) -> LocalListing:
        return Lister(self.threads, self.progress, self.most_listed).listed(pieces, source)

    def census(self, listing: Listing, roots: Iterable[Root], expand: Expand, sort: Sort) -> LocalCensus:
        if not isinstance(listing, LocalListing):
            raise TypeError("a listing of another engine")
        files, _ = self._walk(roots, expand)
        return take(listing.rows, files, expand.order, sort)

    def _walk(self, roots: Iterable[Root], expand: Expand) -> tuple[pa.Table, int]:
        """Returns one row per file that the roots reach, and how many units were opened for it."""
        if expand.folds:
            return walk_folding(alike(roots), expand, lambda due, kind: self._opened(due, expand, kind))
        files = one_per_file([root_rows(roots)])
        opened = 0
        for kind in expand.order:
            due, rest = split(files, pc.and_(files.column("opens"), pc.equal(files.column("kind"), kind.value)))
            files = one_per_file(chain([rest], self._open_all(due, expand, kind)))
            opened += len(due)
        return files, opened

    def _open_all(self, due: pa.Table, expand: Expand, kind: FileKind) -> Iterator[pa.Table]:
        """Yields what the units name. The first unit that cannot be read ends the survey, by its name."""
        needs = due.column("needed").to_numpy()
        for answer in self._opened(due, expand, kind):
            yield with_need(answer.rows, needs[answer.of])

    def _opened(self, due: pa.Table, expand: Expand, kind: FileKind) -> Iterator[Expanded]:
        """Yields what the units name, some at a time, by the number that each unit has among all that are due."""
        facts = (due.column(name).to_pylist() for name in ("key", "size", "expects"))
        units = [File(kind, key, size, True, expects) for key, size, expects in zip(*facts, strict=True)]
        count = 0
        with opener(expand, self.threads) as opened:
            for numbers, answer in opened(units):
                yield answer
                count += len(numbers)
                self.progress.step(f"opening {kind}s", count, len(units))
