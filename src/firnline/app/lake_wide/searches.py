"""Searches of many tables: one listing of their folders, one look at every table of the lake, one walk for all.

A search of one table reads every other one. For a thousand tables by themselves that would be a million reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from firnline.app.many import answer_of, on_each
from firnline.app.other_tables import ListedOnce
from firnline.app.searches import Examined, Searches, SearchTerms, ranges_of, refuse_before, sorting_of
from firnline.errors import FirnlineError, NoSuchTable
from firnline.model.locations import stem_of, stems_around
from firnline.ops.orphans.scope import Scope
from firnline.ops.orphans.search import Means
from firnline.ops.orphans.together import Sought, search_together
from firnline.ops.table.context import refuse_copy
from firnline.plans.answers import Found, TableAnswer
from firnline.ports.engines import ListingTooLarge
from firnline.ports.progress import Silent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firnline.ops.orphans.rules import SearchRequest
    from firnline.ops.orphans.search import CountedSearch
    from firnline.ops.table.context import Registered, TableContext
    from firnline.ports.catalogs import TableName
    from firnline.ports.engines import Engine
    from firnline.ports.formats import State
    from firnline.ports.listings import ListRanges

FILES_OF_A_PASS = 1_000_000
"""About so many files are listed at a time on threads: a gigabyte. Each pass walks the whole lake. On Spark rows stay
on executors, and one pass does.
"""
_AT_A_TIME, _AT_A_TIME_ON_SPARK = 16, 128
"""Searches that wait for what becomes of them; on Spark executors have what they found."""

Conclude = Callable[[Sequence[Examined]], Iterator[TableAnswer[Found]]]
"""Yields what becomes of searches, some at a time: an answer for each."""


@dataclass(frozen=True, slots=True)
class DraftedSearch:
    """A table, where it is searched, about how many files it has, and by which settings."""

    name: TableName
    work: TableContext
    state: State
    scope: Scope
    entries: int
    settings: Mapping[str, str]

    def __str__(self) -> str:
        return str(self.name)

    @property
    def alone(self) -> tuple[str, ...]:
        """Where it is if no catalog has it: then it counts for its own search, and for no other."""
        name = self.work.source.name
        return () if name.catalog else (name.name,)


@dataclass(frozen=True, slots=True)
class LakeSearches:
    """Searches many tables; `at_once` are worked on side by side where each is by itself."""

    searches: Searches
    at_once: int

    def each(
        self, names: Sequence[TableName], asked: SearchRequest, terms: SearchTerms, conclude: Conclude[Found]
    ) -> Iterator[TableAnswer[Found]]:
        """Yields what became of the search of each table, or what stopped it, in the order given.

        A folder that is no table is searched by itself, and so is a table that is in other places than its folders say.
        """
        progress = self.searches.places.progress
        progress.step("tables", 0, len(names))
        drafts = list(on_each(names, partial(self._drafted, terms), self.at_once, _never, Silent()))
        groups, apart = _groups([each for answer in drafts for each in answer.value or ()])
        answers: dict[str, TableAnswer[Found]]
        answers = {each.table: TableAnswer(each.table, problem=each.problem) for each in drafts}
        folders = {answer.table for answer in drafts if answer.value == []}
        by_themselves = [name for name in names if str(name) in folders or name in apart]
        alone = partial(self._alone, asked, terms)
        for start in range(0, len(by_themselves), _AT_A_TIME):
            window = on_each(by_themselves[start : start + _AT_A_TIME], alone, self.at_once, _never, Silent())
            answers |= {each.table: each for each in _concluded(list(window), conclude)}
        for group in groups:
            for some in self._passes(group):
                answers |= {each.table: each for each in self._together(some, asked, terms, conclude)}
                progress.step("tables", len(answers), len(names))
        return (answers[str(name)] for name in names)

    def _drafted(self, terms: SearchTerms, name: TableName) -> list[DraftedSearch]:
        """Returns the table; none where a location is a folder in which there is no table."""
        try:
            place = self.searches.places.place(name)
            work = self.searches.places.context_at(place)
            state = work.source.load()
        except NoSuchTable:
            if name.catalog:
                raise
            return []
        refuse_copy(work.source.name, state)
        refuse_before(state, terms, self.searches.places.clock())
        scope = Scope.of_table(state, bool(terms.leave.include_outside))
        entries = work.source.format.entries(state)
        return [DraftedSearch(name, work, state, scope, entries, place.settings)]

    def _alone(self, asked: SearchRequest, terms: SearchTerms, name: TableName) -> Examined:
        return replace(self.searches.examined(name, asked, terms), name=name)

    def _passes(self, group: Sequence[DraftedSearch]) -> Iterator[tuple[Engine, list[DraftedSearch]]]:
        """Yields so many tables of one server at a time as may be listed at once, and the engine for them."""
        engine = self._engine(group)
        if engine.name == "spark":
            yield engine, list(group)
            return
        some: list[DraftedSearch] = []
        files = 0
        for each in group:
            if some and files + each.entries > FILES_OF_A_PASS:
                yield engine, some
                some, files = [], 0
            some.append(each)
            files += each.entries
        yield engine, some

    def _engine(self, group: Sequence[DraftedSearch]) -> Engine:
        weighed = [("auto", each.state.location, len(each.state.graph), each.entries) for each in group]
        chosen = self.searches.places.engines.choose_together(weighed, len(group))
        return next((each for each in chosen if each.name == "spark"), chosen[0])

    def _together(
        self,
        some: tuple[Engine, Sequence[DraftedSearch]],
        asked: SearchRequest,
        terms: SearchTerms,
        conclude: Conclude[Found],
    ) -> Iterator[TableAnswer[Found]]:
        """Yields what became of each table of a pass. What ends the pass as a whole is told of each of its tables that
        has no answer yet: a unit that cannot be read may be met after the first of them were answered.
        """
        engine, drafted = some
        wanted = replace(self.searches.bounded(asked), also=self.searches.alone(asked))

        def finish(each: _Counted) -> Examined:
            if isinstance(each.found, FirnlineError):
                raise each.found
            of, means, found = each.drafted, each.means, each.found.result()
            said = replace(wanted, also=(*wanted.also, *of.alone))
            searched = self.searches.planned(of.work, of.state, of.scope, found, said, means, terms)
            return Examined(of.name, of.work, of.state, searched, means)

        begun = _of_pass(drafted, lambda: self._counted(engine, drafted, wanted, terms))
        counted, problem, done = begun.value or iter(()), begun.problem, 0
        at_a_time = _AT_A_TIME_ON_SPARK if engine.name == "spark" else _AT_A_TIME
        while problem is None and done < len(drafted):
            window: list[_Counted] = []
            problem = _of_pass(drafted, partial(_take, counted, window, at_a_time)).problem
            yield from _concluded(list(on_each(window, finish, self.at_once, _never, Silent())), conclude)
            done += len(window)
        yield from (TableAnswer(str(each), problem=problem) for each in drafted[done:])

    def _counted(
        self, engine: Engine, drafted: Sequence[DraftedSearch], asked: SearchRequest, terms: SearchTerms
    ) -> Iterator[_Counted]:
        """Returns the tables of a pass with what one census found of each; the first when it is there."""
        means = self._means(engine, drafted, asked, terms)
        sought = [self._sought(each, asked) for each in drafted]
        try:
            found = _begun(search_together(sought, asked, means))
        except ListingTooLarge:
            places = [each.state.location for each in drafted]
            means = replace(means, engine=self.searches.places.engines.spark("several tables", *places))
            found = _begun(search_together(sought, asked, means))
        return (_Counted(each, means, counted) for each, counted in zip(drafted, found, strict=True))

    def _sought(self, drafted: DraftedSearch, asked: SearchRequest) -> Sought:
        formats = self.searches.places.formats(drafted.work.store)
        if not drafted.alone or drafted.alone[0] in asked.also:
            return Sought(drafted.scope, formats, drafted.entries)
        own = partial(self._alone_now, drafted.alone, drafted.scope.folders)
        return Sought(drafted.scope, formats, drafted.entries, own)

    def _alone_now(self, also: Sequence[str], searched: Sequence[str], afresh: bool) -> Iterator[Registered]:
        return self.searches.places.other_tables.alone(also, searched)

    def _means(
        self, engine: Engine, drafted: Sequence[DraftedSearch], asked: SearchRequest, terms: SearchTerms
    ) -> Means:
        """Returns what a pass works with: the names of all tables are listed once, after the listing of this pass."""
        places, folders = self.searches.places, tuple(each for of in drafted for each in of.scope.folders)
        everyone = partial(ListedOnce(places.other_tables).everyone, asked.also, folders)
        ranges, live = ranges_of(self._listed(drafted), terms.inventory, drafted[0].settings)
        formats = places.formats(drafted[0].work.store)
        server = drafted[0].work.server
        return Means(engine, ranges, everyone, sorting_of(folders), formats, places.clock, server, live)

    def _listed(self, drafted: Sequence[DraftedSearch]) -> ListRanges:
        from firnline.stores.by_folder import ByFolder

        stores = self.searches.places.stores
        by_settings = {frozenset(each.settings.items()): stores.ranges(each.settings) for each in drafted}
        first, *others = by_settings.values()
        if not others:
            return first
        pairs = ((folder, each) for each in drafted for folder in each.scope.folders)
        return ByFolder(
            {stem_of(folder): by_settings[frozenset(each.settings.items())] for folder, each in pairs}, first
        )


@dataclass(frozen=True, slots=True)
class _Counted:
    drafted: DraftedSearch
    means: Means
    found: CountedSearch | FirnlineError

    def __str__(self) -> str:
        return str(self.drafted)


@dataclass(frozen=True, slots=True)
class _Pass:
    tables: Sequence[DraftedSearch]

    def __str__(self) -> str:
        return f"{len(self.tables):,} tables"


def _never() -> bool:
    """Ctrl-C ends the searches at once: nothing is under way that a boundary protects."""
    return False


def _of_pass(tables: Sequence[DraftedSearch], act: Callable[[], Found]) -> TableAnswer[Found]:
    """Returns what is done for all tables of a pass; or what stopped it."""
    return answer_of(_Pass(tables), lambda _: act(), _never)


def _concluded(window: Sequence[TableAnswer[Examined]], conclude: Conclude[Found]) -> Iterator[TableAnswer[Found]]:
    """Yields what becomes of some searches; what stopped one is its answer."""
    yield from (TableAnswer(each.table, problem=each.problem) for each in window if each.value is None)
    yield from conclude([each.value for each in window if each.value is not None])


def _take(counted: Iterator[_Counted], window: list[_Counted], at_a_time: int) -> None:
    """Puts the next few into the window. Those that came before a problem stay there."""
    while len(window) < at_a_time and (each := next(counted, None)) is not None:
        window.append(each)


def _begun(found: Iterator[CountedSearch | FirnlineError]) -> Iterator[CountedSearch | FirnlineError]:
    """Returns the same once the first is there: what stops all of them is raised here."""
    first = next(found, None)
    return chain([] if first is None else [first], found)


def _groups(drafted: Sequence[DraftedSearch]) -> tuple[list[list[DraftedSearch]], set[TableName]]:
    """Returns the tables of each server, which are searched together, and those that are searched by themselves: two
    servers may call different objects alike.
    """
    groups: dict[str, list[DraftedSearch]] = {}
    for each in drafted:
        groups.setdefault(each.work.server, []).append(each)
    apart = {name for group in groups.values() for name in _led_elsewhere(group)}
    together = ([each for each in group if each.name not in apart] for group in groups.values())
    return [group for group in together if group], apart


def _led_elsewhere(group: Sequence[DraftedSearch]) -> Iterator[TableName]:
    """Yields the tables of which a folder lies in another one's by its name and not really, or the other way round.

    1. A table lies in a folder that a link leads to, and another table is in the folder of that link.
    2. Each folder is listed by its own name, and what is listed is compared by the names that links lead to.
    3. By two names for one place, what is like a needed file would be looked for by one of them alone.
    """
    from firnline.stores.real_paths import RealPaths

    real = RealPaths()
    folders = [(stem_of(folder), each.name) for each in group for folder in each.scope.folders]
    called = _around([stem for stem, _ in folders])
    really = _around([real(stem) for stem, _ in folders])
    for (_, name), one, other in zip(folders, called, really, strict=True):
        if one != other:
            yield from (name, *(folders[number][1] for number in one ^ other))


def _around(stems: Sequence[str]) -> list[set[int]]:
    """Returns of each folder the numbers of those that it lies in."""
    numbers: dict[str, set[int]] = {}
    for number, stem in enumerate(stems):
        numbers.setdefault(stem, set()).add(number)
    return [{number for around in stems_around(stem) for number in numbers.get(around, ())} for stem in stems]
