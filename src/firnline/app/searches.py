"""Searching for what no table needs: what `orphans` and `dropped` do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firnline.app.catalogs import absolute
from firnline.app.naming import Table
from firnline.app.places import Places
from firnline.app.runs import Leave, Runs
from firnline.app.verbs.planning import OUTSIDE_LATER
from firnline.errors import BlastRadiusExceeded, NoSuchTable, RefusedForSafety, UsageError
from firnline.formats.registry import document_names
from firnline.journal.news import news_of_plan
from firnline.model.locations import bare_path, identity, parse_location
from firnline.ops.looking.files import check_listing_name, write_listing
from firnline.ops.orphans.dropped import Dropped, dropped_tables, refuse_moved
from firnline.ops.orphans.plan import Searched, plan_orphans, save_search, write_search
from firnline.ops.orphans.rules import Rules, SearchRequest
from firnline.ops.orphans.scope import Prefix, Scope
from firnline.ops.orphans.search import Means, SearchResult, search
from firnline.ops.orphans.written import WrittenSearch
from firnline.ops.reachability.pointed import refuse_pointed
from firnline.ops.runs.decision import policy_in_force
from firnline.ops.runs.guard import refuse_forbidden
from firnline.ops.runs.status import RunStatus
from firnline.ops.table.context import Registered, TableContext, refuse_copy
from firnline.plans.orphans import OrphanPlan
from firnline.plans.request import Request
from firnline.policy.inherit import Effective
from firnline.policy.parse import longest_write_ms
from firnline.ports.catalogs import TableName
from firnline.ports.engines import ListingTooLarge
from firnline.ports.listings import ListRanges, Sort
from firnline.settings import backups_ms

if TYPE_CHECKING:
    from firnline.ports.formats import State


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """On what terms a search becomes a run. `consent` is shown the plan; without it the plan is saved and waits."""

    grace_ms: int | None
    blast_radius: float | None
    dry_run: bool
    consent: Callable[[OrphanPlan], bool]
    leave: Leave
    inventory: str | Path | None
    files: str | Path | None


@dataclass(frozen=True, slots=True)
class Examined:
    """A search of one table that came to its end, and what it worked with; what becomes of it is still open."""

    name: TableName
    work: TableContext
    state: State
    searched: Searched
    means: Means

    def __str__(self) -> str:
        return str(self.name)

    @property
    def plan(self) -> OrphanPlan:
        return self.searched.plan

    def write(self) -> WrittenSearch:
        return write_search(self.searched, self.means, self.work.store, self.work.root(self.state))


@dataclass(frozen=True, slots=True)
class Searches:
    """Searches, and the runs that come of them."""

    places: Places
    runs: Runs

    def orphans(self, table: Table, asked: SearchRequest, terms: SearchTerms) -> tuple[OrphanPlan, RunStatus | None]:
        """Returns what no table needs of a table's folders or under a prefix, and the run that removes it, if any."""
        return self.carried(self.examined(table, asked, terms), terms)

    def examined(self, table: Table, asked: SearchRequest, terms: SearchTerms) -> Examined:
        """Returns what no table needs of a table's folders or under a prefix. Changes nothing."""
        work = self.places.searchable(table)
        state = work.source.load()
        is_folder = isinstance(work.source, Prefix)
        if not is_folder:
            refuse_copy(work.source.name, state)
        scope = Scope((state.location,)) if is_folder else Scope.of_table(state, bool(terms.leave.include_outside))
        alone = () if is_folder or work.source.name.catalog else (work.source.name.name,)
        return self._examined(work, state, scope, replace(asked, also=(*self.alone(asked), *alone)), terms)

    def bounded(self, asked: SearchRequest) -> SearchRequest:
        """Returns the same with what the configuration says of ages: of open writes, and of backups."""
        config = self.places.config
        return replace(asked, longest_write_ms=longest_write_ms(config), backups_ms=backups_ms(config))

    def alone(self, asked: SearchRequest) -> tuple[str, ...]:
        """Returns the tables that no catalog has but the operator named; those of catalogs count anyway. A purge may
        start from another folder, so what a relative path means is settled now.
        """
        return tuple(name.name for name in map(self.places.catalogs.name_of, asked.also) if not name.catalog)

    def dropped(self, prefix: str) -> list[Dropped]:
        """Returns the folders under a prefix that look like tables and that no configured catalog knows."""
        work = self.places.prefix(prefix)
        folder = work.source.load().location
        _refuse_no_folder(folder)
        means = self._means(work, (folder,), SearchRequest(), None)
        return dropped_tables(folder, means, work.store)

    def purge_dropped(
        self, prefix: str, folder: str, asked: SearchRequest, terms: SearchTerms
    ) -> tuple[OrphanPlan, RunStatus | None]:
        """Returns what would go of one dropped table, and the run that removes it, if any."""
        named = {identity(each.folder): each for each in self.dropped(prefix)}
        chosen = named.get(identity(folder).rstrip("/"))
        if chosen is not None and chosen.problem is not None:
            raise RefusedForSafety(
                f"nothing of {chosen.folder} can be purged: {chosen.problem}",
                hint="nothing was changed; what is purged here was in a catalog once, and can be read",
            )
        if chosen is None or chosen.uuid is None:
            known = ", ".join(each.folder for each in named.values()) or "none"
            raise UsageError(f"{folder} is no dropped table under {prefix}", hint=f"there are: {known}")
        work = self.places.prefix(chosen.folder)
        departed = self.places.formats(work.store).dropped_table(chosen.metadata)
        if departed is None:
            raise NoSuchTable(f"{chosen.metadata} is gone", hint="search again")
        refuse_moved(departed, chosen.folder)
        refuse_pointed(self.places.formats(work.store).of(departed), departed)
        scope = Scope((departed.location,), departed=departed)
        return self.carried(self._examined(work, work.source.load(), scope, asked, terms), terms)

    def _examined(
        self, work: TableContext, state: State, scope: Scope, asked: SearchRequest, terms: SearchTerms
    ) -> Examined:
        asked = self.bounded(asked)
        refuse_before(state, terms, self.places.clock())
        means = self._means(work, scope.folders, asked, terms.inventory)
        try:
            found = search(scope, asked, means)
        except ListingTooLarge:
            means = replace(means, engine=self.places.engines.spark(state.table, state.location))
            found = search(scope, asked, means)
        searched = self.planned(work, state, scope, found, asked, means, terms)
        return Examined(work.source.name, work, state, searched, means)

    def planned(
        self,
        work: TableContext,
        state: State,
        scope: Scope,
        found: SearchResult,
        asked: SearchRequest,
        means: Means,
        terms: SearchTerms,
    ) -> Searched:
        """Returns the plan for what was found."""
        effective = policy_in_force(state, work.source.name, self.places.config, Request())
        said: dict[str, Any] = {
            "grace_ms": effective.grace.value if terms.grace_ms is None else terms.grace_ms,
            "cap": effective.blast_radius.value if terms.blast_radius is None else terms.blast_radius,
            "notes": tuple(self._notes(work, state, scope, terms, effective)),
        }
        return plan_orphans(state, scope, found, asked, means, **said)

    def carried(self, examined: Examined, terms: SearchTerms) -> tuple[OrphanPlan, RunStatus | None]:
        """Returns the plan, saved where something would go, and its run; as far as it may go now if that is meant."""
        plan = examined.plan
        if terms.files is not None:
            write_listing(examined.searched, Path(terms.files), examined.state.owned)
        if terms.dry_run or not plan.stages:
            return plan, None
        if plan.refused:
            raise BlastRadiusExceeded(plan.refused, hint="raise --blast-radius, if that is really meant")
        meant = terms.consent(plan)
        plan = self.saved(examined, meant=meant)
        run = str(plan.run)
        return plan, self.runs.advance(run, terms.leave) if meant else self.runs.named(run)

    def saved(self, examined: Examined, *, meant: bool) -> OrphanPlan:
        """Returns the plan with the run that the search became, one of its own. Raises RefusedForSafety where this
        machine's clock is off: what was too young may have counted as old.
        """
        work, state = examined.work, examined.state
        root, now_ms, enter = work.root(state), work.by_the_store(state).now(), partial(work.enter, state)
        sealing, address = work.sealing(True), work.address
        plan = save_search(examined.write(), work.store, root, sealing, now_ms, enter, address=address, meant=meant)
        if work.watch.observers:
            work.watch.tell(news_of_plan(str(plan.run), plan.to_json(), plan.now_ms))
        return plan

    def _notes(
        self, work: TableContext, state: State, scope: Scope, terms: SearchTerms, effective: Effective
    ) -> Iterator[str]:
        yield from self.places.stores.warnings(work.source.name, state.location)
        yield from (f"not searched: {each} (--include-outside)" for each in scope.left_out(state))
        yield from self.places.vouched(state)
        if terms.leave.include_outside and not effective.include_outside.value:
            yield OUTSIDE_LATER

    def _means(
        self, work: TableContext, folders: tuple[str, ...], asked: SearchRequest, inventory: str | Path | None
    ) -> Means:
        settings = self.places.stores.settings_of(work.source.name)
        engine = self.places.engines.choose(work.source.load(), work.source.format, "auto")
        everyone = partial(self._everyone_now, asked.also, folders)
        listed = self.places.stores.ranges(settings)
        ranges, live = ranges_of(listed, inventory, settings)
        formats = self.places.formats(work.store)
        return Means(engine, ranges, everyone, sorting_of(folders), formats, self.places.clock, work.server, live)

    def _everyone_now(self, also: Sequence[str], searched: Sequence[str], afresh: bool) -> Iterable[Registered]:
        return self.places.other_tables.everyone(also, searched)


def refuse_before(state: State, terms: SearchTerms, now_ms: int) -> None:
    """Raises what stops a search before anything is listed."""
    refuse_forbidden(state, now_ms)
    if terms.files is not None:
        check_listing_name(Path(terms.files))


def ranges_of(
    listed: ListRanges, inventory: str | Path | None, settings: Mapping[str, str]
) -> tuple[ListRanges, ListRanges | None]:
    """Returns what is listed, and the store itself where that is a written inventory."""
    from firnline.stores.inventory import Inventory

    return (listed, None) if inventory is None else (Inventory(absolute(str(inventory)), settings), listed)


def sorting_of(folders: tuple[str, ...]) -> Callable[[Rules], Sort]:
    """Returns what makes a sort of rules. What lies in the folders is named by them, by whatever links it is reached;
    each of their links is looked up once for all sorts.
    """
    from firnline.formats.sorting import Sorting
    from firnline.stores.real_paths import RealPaths

    real = RealPaths(folders).column

    def make_sort(rules: Rules) -> Sort:
        told = (rules.cutoff_ms, rules.places, document_names(), rules.others, rules.own, rules.same, rules.by_name)
        return Sorting(*told, real)

    return make_sort


def _refuse_no_folder(prefix: str) -> None:
    """Raises UsageError for a local folder that is not there: with no word, nothing would be found in it. An object
    store has no folders.
    """
    place = parse_location(prefix)
    if place.scheme == "file" and not any(map(os.path.isdir, (place.path, bare_path(prefix)))):
        raise UsageError(f"no such folder: {place.path}", hint="name one with tables under it")
