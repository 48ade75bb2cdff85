"""The Spark engine behind the Engine port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from firnline.errors import FirnlineError
from firnline.model.files import Root
from firnline.ports.engines import Listing, ServerRoots, Survey, TableSearch, TableWalk, Territory
from firnline.ports.expanding import Expand
from firnline.ports.listings import KeyRange, ListRanges, Sort
from firnline.ports.progress import Progress, Silent
from firnline.ports.stores import AS_CALLED, Head, RealNames
from firnline.spark.after_survey.faults import Looking
from firnline.spark.after_survey.reached import SparkReached
from firnline.spark.census import Asked, SparkCensus, ToTheOne, take
from firnline.spark.listing import SparkListing, list_pieces
from firnline.spark.roads import two_roads
from firnline.spark.rounds import walk
from firnline.spark.settling import settled
from firnline.spark.spread import spread_of
from firnline.spark.streaming import described
from firnline.spark.survey import Held, SparkSurvey, summed
from firnline.spark.travelling import Parts
from firnline.walking.axis import passes_of
from firnline.walking.dealing import Dealer, Walks, kinds_of


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Runs the pipeline on a session that the caller passes in. `of` is the table, for those who watch Spark; `at_once`
    is how many requests a store may be sent at a time, where that was said. `turn` is one for all engines of a process
    then: jobs of several tables that ask a store come one after the other, since each has that many under way.
    """

    session: SparkSession
    progress: Progress = field(default_factory=Silent)
    of: str = ""
    at_once: int | None = None
    turn: AbstractContextManager[object] = field(default_factory=nullcontext, repr=False)

    @property
    def name(self) -> str:
        return "spark"

    def survey(
        self, roots: Iterable[Root], expand: Expand, territory: Territory, elsewhere: Sequence[ServerRoots] = ()
    ) -> SparkSurvey:
        (answer,) = self.surveys([TableWalk(list(roots), expand, territory, elsewhere)])
        if isinstance(answer, FirnlineError):
            raise answer
        return answer

    def surveys(self, walks: Sequence[TableWalk]) -> list[SparkSurvey | FirnlineError]:
        if not walks:
            return []
        with described(self.session, "laying out the walk", self.of):
            files = self._walk(walks).persist()
        held = Held(files, len(walks))
        try:
            with self.turn, described(self.session, "walking, and judging every file", self.of):
                sums = summed(files, len(walks))
            with described(self.session, "looking where folders really are", self.of):
                doubts = two_roads(files, walks, sums)
        except BaseException:
            held.drop()
            raise
        found: list[SparkSurvey | FirnlineError] = []
        for number, each in enumerate(walks):
            problem = sums[number].problem or doubts.get(number)
            if problem is not None:
                held.close(number)
            kinds = frozenset(kind.value for kind in each.expand.order)
            found.append(problem or SparkSurvey(held, number, sums[number], kinds, self.of))
        return found

    def faults(self, survey: Survey, store: Head, listed: Listing | None = None) -> Iterator[pa.RecordBatch]:
        if not isinstance(survey, SparkSurvey):
            raise TypeError("a survey of another engine")
        if not isinstance(listed, SparkListing | None):
            raise TypeError("a listing of another engine")
        self.progress.step("looking at files on Spark", 0, survey.kept.all.files)
        return Looking(survey, self.at_once, self.of, self.turn).faults(store, listed)

    def reached(self, *, everywhere: bool = False, real: RealNames = AS_CALLED) -> SparkReached:
        return SparkReached(self.session, everywhere, real, self.of)

    def list(self, pieces: Iterable[KeyRange], source: ListRanges) -> SparkListing:
        self.progress.step("listing on Spark", 0, None)
        with self.turn:
            return list_pieces(self.session, pieces, source, self.of, self.at_once)

    def census(self, listing: Listing, needs: Sequence[ServerRoots], sort: Sort) -> SparkCensus:
        pairs = [(needed, part) for part in needs for needed in (True, False)]
        walks = [_walk_of([root for root in part.roots if root.needed is needed], part) for needed, part in pairs]
        owners = [number for number, (needed, _) in enumerate(pairs) if needed]
        asked = Asked([sort], [owners], [[]], np.ones(len(walks), dtype=bool), ToTheOne())
        (census,) = self._counted(listing, walks, asked)
        if isinstance(census, FirnlineError):
            raise census
        return census

    def censuses(
        self, listing: Listing, searches: Sequence[TableSearch], needs: Sequence[ServerRoots]
    ) -> Iterator[SparkCensus | FirnlineError]:
        of = Walks.of(searches, needs)
        asked = Asked([each.sort for each in searches], of.needed, of.private, of.common, Dealer(searches))
        return self._counted(listing, of.walks, asked) if searches else iter(())

    def _counted(
        self, listing: Listing, walks: Sequence[TableWalk], asked: Asked
    ) -> Iterator[SparkCensus | FirnlineError]:
        if not isinstance(listing, SparkListing):
            raise TypeError("a listing of another engine")
        with self.turn, described(self.session, "holding the listing against all needs", self.of):
            return iter(take(listing.rows, self._walk(walks), kinds_of(walks), asked, self.of))

    def _walk(self, walks: Sequence[TableWalk]) -> DataFrame:
        """Returns one row per table and file that it reaches; nothing is opened before the rows are asked for."""
        self.progress.step("walking on Spark", 0, None)
        passes = passes_of(walks)
        units, entries = sum(len(each.starts) for each in passes), [each.entries for each in walks]
        spread = spread_of(self.session, units, sum(entries), len(passes), self.at_once)
        parts = Parts.of(spread.parts, entries)
        rows = [walk(self.session, begun, spread, parts) for begun in passes]
        said = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), rows)
        return settled(said, parts, passes[0].means.axis, [each.territory for each in walks])


def _walk_of(roots: Sequence[Root], part: ServerRoots) -> TableWalk:
    """Returns the walk of some roots of a server, all of which count as needed."""
    return TableWalk([replace(root, needed=True) for root in roots], part.expand, Territory(None), server=part.server)
