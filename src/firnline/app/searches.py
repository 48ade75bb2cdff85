"""Searching for what no table needs: what `orphans` and `dropped` do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firnline.app.places import absolute
from firnline.app.runs import OUTSIDE_LATER, Moment, Runs, instant
from firnline.errors import BlastRadiusExceeded, NoSuchTable, UsageError
from firnline.formats.registry import document_names
from firnline.model.locations import identity
from firnline.model.times import parse_duration
from firnline.ops.looking.files import check_listing_name, write_listing
from firnline.ops.orphans.dropped import Dropped, dropped_tables, refuse_moved
from firnline.ops.orphans.plan import Searched, plan_orphans, save_search
from firnline.ops.orphans.scope import Prefix, Scope
from firnline.ops.orphans.search import Means, Rules, SearchRequest
from firnline.ops.runs.advance import (
    RunStatus,
)
from firnline.ops.runs.decision import policy_in_force
from firnline.ops.runs.guard import refuse_forbidden
from firnline.ops.table.context import TableContext, refuse_copy
from firnline.plans.orphans import OrphanPlan
from firnline.plans.request import Request
from firnline.ports.engines import ListingTooLarge
from firnline.ports.listings import Sort

if TYPE_CHECKING:
    from firnline.ports.formats import State


class Searches(Runs):
    """Searches, and the runs that come of them."""

    def orphans(
        self,
        table: str,
        *,
        older_than: Moment | None = None,
        grace: str | None = None,
        inventory: str | Path | None = None,
        files: str | Path | None = None,
        same: tuple[tuple[str, str], ...] = (),
        dead: frozenset[str] = frozenset(),
        also: tuple[str, ...] = (),
        keep_near_misses: bool = False,
        include_outside: bool = False,
        blast_radius: float | None = None,
        dry_run: bool = False,
        break_lease: bool = False,
        consent: Callable[[OrphanPlan], bool] = lambda plan: False,
    ) -> tuple[OrphanPlan, RunStatus | None]:
        """Returns what no table needs of a table's folders or under a prefix, and the run that removes it, if any.

        `consent` is shown the plan; without it the plan is saved and waits. `also` are tables that no catalog has.
        """
        work = self._searchable(table)
        state = work.source.load()
        is_folder = isinstance(work.source, Prefix)
        if not is_folder:
            refuse_copy(work.source.name, state)
        scope = Scope((state.location,)) if is_folder else Scope.of_table(state, include_outside)
        alone = () if is_folder or work.source.name.catalog else (work.source.name.name,)
        # A purge may start from another folder, so what a relative path means is settled now. Tables of the catalogs
        # count anyway.
        others = tuple(name.name for name in map(self.name_of, also) if not name.catalog)
        asked = SearchRequest(instant(older_than), same, dead, (*others, *alone), keep_near_misses)
        terms = _Terms(grace, blast_radius, dry_run, break_lease, consent, include_outside or None)
        return self._searched(work, state, scope, asked, terms, inventory, files)

    def dropped(self, prefix: str) -> list[Dropped]:
        """Returns the folders under a prefix that look like tables and that no configured catalog knows."""
        work = self._prefix(prefix)
        folder = work.source.load().location
        means = self._means(work, Scope((folder,)), SearchRequest(), None)
        return dropped_tables(folder, means, work.store)

    def purge_dropped(
        self,
        prefix: str,
        folder: str,
        *,
        older_than: Moment | None = None,
        grace: str | None = None,
        break_lease: bool = False,
        consent: Callable[[OrphanPlan], bool] = lambda plan: False,
    ) -> tuple[OrphanPlan, RunStatus | None]:
        """Returns what would go of one dropped table, and the run that removes it, if any."""
        named = {identity(each.folder): each for each in self.dropped(prefix)}
        chosen = named.get(identity(folder).rstrip("/"))
        if chosen is None or chosen.uuid is None:
            known = ", ".join(each.folder for each in named.values()) or "none"
            raise UsageError(f"{folder} is no dropped table under {prefix}", hint=f"there are: {known}")
        work = self._prefix(chosen.folder)
        departed = self._formats(work.store).dropped_table(chosen.metadata)
        if departed is None:
            raise NoSuchTable(f"{chosen.metadata} is gone", hint="search again")
        refuse_moved(departed, chosen.folder)
        scope = Scope((departed.location,), departed=departed)
        terms = _Terms(grace, None, False, break_lease, consent)
        return self._searched(work, work.source.load(), scope, SearchRequest(instant(older_than)), terms, None, None)

    def _searched(
        self,
        work: TableContext,
        state: State,
        scope: Scope,
        asked: SearchRequest,
        terms: _Terms,
        inventory: str | Path | None,
        files: str | Path | None,
    ) -> tuple[OrphanPlan, RunStatus | None]:
        refuse_forbidden(state, self.clock())
        if files is not None:
            check_listing_name(Path(files))
        means = self._means(work, scope, asked, inventory)
        effective = policy_in_force(state, work.source.name, self.config, Request())
        grace_ms = effective.grace.value if terms.grace is None else parse_duration(terms.grace)
        cap = effective.blast_radius.value if terms.blast_radius is None else terms.blast_radius
        warnings = self._warnings(work.source.name, state.location)
        left_out = (f"not searched: {each} (--include-outside)" for each in scope.left_out(state))
        notes = (*warnings, *left_out, *self._vouched(state))
        if terms.include_outside and not effective.include_outside.value:
            notes = (*notes, OUTSIDE_LATER)
        searched = self._plan_orphans(state, scope, asked, means, grace_ms=grace_ms, cap=cap, notes=notes)
        if files is not None:
            write_listing(searched, Path(files), state.owned)
        if terms.dry_run or not searched.plan.victims.by_kind:
            return searched.plan, None
        if searched.plan.refused:
            raise BlastRadiusExceeded(searched.plan.refused, hint="raise --blast-radius, if that is really meant")
        meant = terms.consent(searched.plan)
        plan = save_search(searched, means, work.store, work.root(state), work.sealing(True), meant=meant)
        run = str(plan.run)
        if not meant:
            return plan, self.run(run)
        return plan, self.advance(run, break_lease=terms.break_lease, include_outside=terms.include_outside)

    def _plan_orphans(self, state: State, scope: Scope, asked: SearchRequest, means: Means, **terms: Any) -> Searched:
        """Returns the plan; made on Spark where one machine met more objects than it should hold."""
        try:
            return plan_orphans(state, scope, asked, means, **terms)
        except ListingTooLarge:
            return plan_orphans(state, scope, asked, replace(means, engine=self._spark(state.table)), **terms)

    def _means(self, work: TableContext, scope: Scope, asked: SearchRequest, inventory: str | Path | None) -> Means:
        from firnline.formats.sorting import Sorting
        from firnline.stores.inventory import Inventory
        from firnline.stores.ranges import ObjectRanges
        from firnline.stores.real_paths import RealPaths

        def make_sort(rules: Rules) -> Sort:
            told = (rules.cutoff_ms, rules.places, document_names(), rules.others, rules.own, rules.same, rules.by_name)
            return Sorting(*told, RealPaths(scope.folders).column)

        settings = self.settings_of(work.source.name)
        ranges = ObjectRanges(settings) if inventory is None else Inventory(absolute(str(inventory)), settings)
        live = None if inventory is None else ObjectRanges(settings)
        engine = self._choose(work.source.load(), work.source.format, "auto")
        everyone = partial(self._everyone, asked.also, scope.folders)
        return Means(engine, ranges, everyone, make_sort, self._formats(work.store), self.clock, live)


@dataclass(frozen=True, slots=True)
class _Terms:
    """On what terms a search becomes a run."""

    grace: str | None
    blast_radius: float | None
    dry_run: bool
    break_lease: bool
    consent: Callable[[OrphanPlan], bool]
    include_outside: bool | None = None
