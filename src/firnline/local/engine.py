"""The local engine behind the Engine port."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import FirnlineError
from firnline.local.rows import in_batches, one_per_file, root_rows, split, totals_of, with_need
from firnline.model.files import File, FileKind, Root, Totals
from firnline.ports.engines import FILE_COLUMNS, Listing, ServerRoots, Survey, TableSearch, TableWalk, Territory
from firnline.ports.expanding import Expand, Expanded, Failures, opener
from firnline.ports.progress import Progress, Silent
from firnline.ports.stores import AS_CALLED, Head, RealNames
from firnline.walking.arrow import column_of
from firnline.walking.faults import THREADS, faulty, unproved
from firnline.walking.verdicts import KEPT, VICTIM, ByVerdict, judged, verdicts

if TYPE_CHECKING:
    from firnline.local.census import LocalCensus
    from firnline.local.listing import LocalListing
    from firnline.local.reached import LocalReached
    from firnline.local.walk import Files, PassFound
    from firnline.model.spans import Flags, Numbers
    from firnline.ports.listings import KeyRange, ListRanges, Sort
    from firnline.walking.axis import Pass
    from firnline.walking.opening import Open

BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class LocalSurvey(ByVerdict):
    """A survey whose files are one Arrow table in this process."""

    files: pa.Table
    units_opened: int

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
        return totals_of(judged(self.files, verdict, ("kind", "size")))


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
        self, roots: Iterable[Root], expand: Expand, territory: Territory, elsewhere: Sequence[ServerRoots] = ()
    ) -> LocalSurvey:
        theirs = [self._walk(each.roots, each.expand)[0] for each in elsewhere]
        files, opened = self._walk(roots, expand)
        return LocalSurvey(verdicts(files, territory, pa.concat_tables(theirs) if theirs else None), opened)

    def surveys(self, walks: Sequence[TableWalk]) -> list[LocalSurvey | FirnlineError]:
        if len(walks) == 1:
            (walk,) = walks
            try:
                return [self.survey(walk.roots, walk.expand, walk.territory, walk.elsewhere)]
            except FirnlineError as problem:
                return [problem]

        from firnline.local.walk import files_of
        from firnline.walking.axis import passes_of

        passes = passes_of(walks) if walks else []
        found = [self._found(begun) for begun in passes]
        files = [files_of(begun, each.said) for begun, each in zip(passes, found, strict=True)]
        return [_judged(number, walk, files, found) for number, walk in enumerate(walks)]

    def faults(self, survey: Survey, store: Head, listed: Listing | None = None) -> Iterator[pa.RecordBatch]:
        """One batch of files is looked at while the next one waits: memory does not grow with them."""
        from firnline.local.listing import LocalListing

        if not isinstance(survey, LocalSurvey):
            raise TypeError("a survey of another engine")
        if not isinstance(listed, LocalListing | None):
            raise TypeError("a listing of another engine")
        due = judged(survey.files, KEPT, FILE_COLUMNS)
        if listed is not None:
            due = due.filter(unproved(due.column("size"), listed.sizes_of(due.column("key"))))
        every = survey.kept.all.files
        count = every - len(due)
        with ThreadPoolExecutor(max(THREADS, self.threads)) as pool:
            for batch in in_batches(due, BATCH_ROWS):
                found = faulty(batch, store, pool)
                if len(found):
                    yield found
                count += len(batch)
                self.progress.step("looking at files", count, every)

    def reached(self, *, everywhere: bool = False, real: RealNames = AS_CALLED) -> LocalReached:
        from firnline.local.reached import LocalReached

        return LocalReached(everywhere, real)

    def list(self, pieces: Iterable[KeyRange], source: ListRanges) -> LocalListing:
        from firnline.local.listing import Lister

        return Lister(self.threads, self.progress, self.most_listed).listed(pieces, source)

    def census(self, listing: Listing, needs: Sequence[ServerRoots], sort: Sort) -> LocalCensus:
        from firnline.local.census import take
        from firnline.local.listing import LocalListing
        from firnline.walking.dealing import kinds_of

        if not isinstance(listing, LocalListing):
            raise TypeError("a listing of another engine")
        files = [self._walk(each.roots, each.expand)[0] for each in needs]
        return take(listing.rows, files[0] if len(files) == 1 else one_per_file(files), kinds_of(needs), sort)

    def censuses(
        self, listing: Listing, searches: Sequence[TableSearch], needs: Sequence[ServerRoots]
    ) -> Iterator[LocalCensus | FirnlineError]:
        from firnline.local.censuses import ListedNames, Marked, Matching, take_each
        from firnline.local.listing import LocalListing
        from firnline.walking.dealing import Walks, stopped_by

        if not isinstance(listing, LocalListing):
            raise TypeError("a listing of another engine")
        if not searches:
            return
        sort = searches[0].sort
        names = ListedNames.of(listing.rows, sort)
        asked = Walks.of(searches, needs)

        from firnline.walking.axis import passes_of

        passes, matching = passes_of(asked.walks), Matching(names, sort, asked.kinds)
        found = [self._found(begun, matching) for begun in passes]
        problems = {walk: problem for each in found for walk, problem in each.problems.items()}
        stopped = [stopped_by(problems, asked.common, private) for private in asked.private]

        from firnline.local.walk import files_of

        files = [files_of(begun, each.said) for begun, each in zip(passes, found, strict=True)]
        marked = Marked(listing.rows, names, files, asked, sort)
        for problem, census in zip(stopped, take_each(marked, names, searches), strict=True):
            yield problem or census

    def _walk(self, roots: Iterable[Root], expand: Expand) -> tuple[pa.Table, int]:
        """Returns one row per file that the roots reach, and how many units were opened for it.

        Where one table is walked and nothing is taken away, each row says itself whether it is needed: without spans
        that takes two thirds of the time and half of the memory.
        """
        if expand.folds:
            return self._folded(roots, expand)
        files = one_per_file([root_rows(roots)])
        opened = 0
        for kind in expand.order:
            due, rest = split(files, pc.and_(files.column("opens"), pc.equal(files.column("kind"), kind.value)))
            is_there = np.zeros(len(due), dtype=bool)
            files = one_per_file(chain([rest], self._named(due, expand, kind, is_there)))
            opened += int(is_there.sum())
        if pc.any(files.column("opens")).as_py():
            from firnline.walking.opening import come_too_late

            raise come_too_late()
        return files, opened

    def _folded(self, roots: Iterable[Root], expand: Expand) -> tuple[pa.Table, int]:
        """Returns the same where units take away what others name."""
        from firnline.local.walk import files_of
        from firnline.walking.axis import passes_of

        (begun,) = passes_of([TableWalk(list(roots), expand, Territory(None))])
        found = self._found(begun)
        for problem in found.problems.values():
            raise problem
        return files_of(begun, found.said).of(0)[0], int(found.opened[0])

    def _named(self, due: pa.Table, expand: Expand, kind: FileKind, is_there: Flags) -> Iterator[pa.Table]:
        """Yields what the units name, and notes those that tell of themselves. The first unit that cannot be read ends
        the survey, by its name.
        """
        needs = due.column("needed").to_numpy()
        for answer in self._opened([expand], due, kind):
            is_there[answer.of] = True
            yield with_need(answer.rows, needs[answer.of])

    def _found(self, begun: Pass, kept: Callable[[Expanded], Expanded] = lambda answer: answer) -> PassFound:
        """Returns what the units of a pass say, as much of it as `kept` leaves."""

        def open_kind(units: pa.Table, kind: FileKind) -> Open:
            def open_some(numbers: Numbers, by: Numbers, failures: Failures) -> Iterator[Expanded]:
                chosen = units.take(column_of(numbers))
                return map(kept, self._opened(begun.means.expands, chosen, kind, by.tolist(), failures))

            return open_some

        from firnline.local.walk import walk_together

        return walk_together(begun, open_kind)

    def _opened(
        self,
        expands: Sequence[Expand],
        due: pa.Table,
        kind: FileKind,
        by: Sequence[int] | None = None,
        failures: Failures | None = None,
    ) -> Iterator[Expanded]:
        """Yields what the units name, some at a time, by the number that each unit has among all that are due."""
        facts = (due.column(name).to_pylist() for name in ("key", "size", "expects"))
        units = [File(kind, key, size, True, expects) for key, size, expects in zip(*facts, strict=True)]
        count = 0
        with opener(expands, self.threads) as opened:
            for numbers, answer in opened(units, by, failures):
                yield answer
                count += len(numbers)
                self.progress.step(f"opening {kind}s", count, len(units))


def _judged(
    number: int, walk: TableWalk, files: Sequence[Files], found: Sequence[PassFound]
) -> LocalSurvey | FirnlineError:
    """Returns the survey of one of the walks; what keeps it from being judged, if anything does."""
    problem = next((each.problems[number] for each in found if number in each.problems), None)
    if problem is not None:
        return problem
    parts = [each.of(number) for each in files]
    rows, theirs = (pa.concat_tables(part[which] for part in parts) for which in (0, 1))
    opened = sum(int(each.opened[number]) for each in found)
    try:
        return LocalSurvey(verdicts(rows, walk.territory, theirs if walk.elsewhere else None), opened)
    except FirnlineError as unseen:  # where one of its files leads; the others' files are not to be lost with it
        return unseen
