"""Opening tiers, and what is asked of them: `archive` and `tiers`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from firnline.app.catalogs import Table, absolute
from firnline.errors import PolicyError, UsageError
from firnline.formats.registry import kit_named
from firnline.model.files import Tally
from firnline.model.snapshots import RefKind, SnapshotId
from firnline.ops.history.reading import expired_snapshots
from firnline.ops.marks.tags import resolve
from firnline.ops.reachability.pointed import pointed_versions
from firnline.ops.runs.decision import decide_to_act
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.choosing import choose_archive, head_of
from firnline.ops.tiers.finding import histories, open_for
from firnline.ops.tiers.handing import Handing
from firnline.ops.tiers.restoring import Restored, Restoring
from firnline.ops.tiers.tier import Tier, tier_of
from firnline.ops.tiers.transfer import walked
from firnline.ops.tiers.whereabouts import TableTiers, holding, price_of, whereabouts
from firnline.plans.plan import tally_json
from firnline.plans.request import Request
from firnline.policy.prices import price_list
from firnline.policy.tiers import tier_named
from firnline.ports.catalogs import Still, TableName
from firnline.ports.formats import State, TableFormat
from firnline.tiers.belonging import LIVE

if TYPE_CHECKING:
    from firnline.app.places import Places


def open_tier(places: Places, table: TableName, tier: str, uuid: str) -> Tier:
    """Returns a tier for a live table, reached with the settings of the catalog of the tier's name. Raises PolicyError
    where there is no such tier, or no such catalog.
    """
    from firnline.app.stores import read_only, store_settings

    policy = tier_named(places.config.tiers, tier)
    if tier not in places.catalogs.configured:
        raise PolicyError(
            f"the tier {tier!r} has no catalog",
            hint=f"configure a catalog named {tier} for PyIceberg, such as a SQLite file: its tables are found there",
        )
    catalog = places.catalogs.open(tier)
    settings = store_settings(places.catalogs.settings(tier).properties)
    store = places.stores.open(settings)
    return Tier(
        policy=policy,
        uuid=uuid,
        table=TableName(tier, table.namespace, table.name),
        catalog=catalog,
        store=store,
        format=kit_named(catalog.format).format(read_only(store)),
        copy=places.stores.copying(places.stores.settings_of(table), settings, policy.storage_class),
        back=places.stores.copying(settings, places.stores.settings_of(table)),
        verify=places.stores.verifying(settings),
        many=partial(places.engines.copy_many, table, policy.root),
        ranges=places.stores.ranges(settings),
    )


@dataclass(frozen=True, slots=True)
class HandedSnapshots:
    """What `archive` handed over: None of `metadata` where there was nothing to hand over."""

    table: str
    tier: str | None
    into: str | None
    snapshots: tuple[str, ...]
    metadata: str | None
    copied: Tally
    present: Tally

    def to_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "tier": self.tier,
            "into": self.into,
            "snapshots": list(self.snapshots),
            "metadata": self.metadata,
            "copied": tally_json(self.copied),
            "present": tally_json(self.present),
        }


@dataclass(frozen=True, slots=True)
class Tiers:
    """What is asked of the tiers of a table."""

    places: Places

    def archive(self, table: Table, request: Request) -> HandedSnapshots:
        """Returns what was handed to the table's tier: the snapshots that a run would expire now. The live table is not
        changed. Raises UsageError where its policy names no tier.
        """
        work = self.places.table_context(table)
        state = work.source.load()
        if tier_of(state, work.source.name, work.config, request) is None:
            raise UsageError(
                f"the policy of {state.table} names no tier",
                hint="`tiers:` of firnline.yaml says which there are, and `archive: NAME` which one a table has",
            )
        with self.places.alone(work.root(state)), work.lease(state) as (leased_work, lease):
            return self._handed(leased_work, request, lease.check)

    def _handed(self, work: TableContext, request: Request, still: Still) -> HandedSnapshots:
        state = work.source.load()
        pointed = pointed_versions(work.source.format, state)
        settled = decide_to_act(work.source.format, state, work.source.name, work.config, request, work.now(), pointed)
        going = settled.decision
        chosen = choose_archive(work, state, request, set(going.expired), set(going.expired_refs))
        if chosen is None:
            return HandedSnapshots(state.table, None, None, (), None, Tally(), Tally())
        tier = open_for(work, state, chosen.tier)
        tags = {name for name in going.expired_refs if head_of(state, name) in chosen.snapshots}
        done = Handing(work, state, tier, still).hand_over(set(chosen.snapshots), tags)
        return HandedSnapshots(
            state.table, chosen.tier, chosen.table, chosen.snapshots, done.metadata, done.copied, done.present
        )

    def of_table(self, table: Table) -> TableTiers:
        """Returns where each snapshot of a table lives, and what each tier holds of it. Changes nothing."""
        work = self.places.table_context(table)
        live, prices = work.source.load(), price_list(work.config.prices)
        found = {tier.policy.name: (tier, state) for tier, state in histories(work, live)}
        remembered = expired_snapshots(work.source, live, work.store)
        holdings = [holding(LIVE, live, self._size(work, work.source.format, live), price_of(prices, None))]
        for name, (tier, state) in found.items():
            size = self._size(work, tier.format, state)
            holdings.append(holding(name, state, size, price_of(prices, tier.policy.storage_class)))
        there = {name: state for name, (_, state) in found.items()}
        return TableTiers(live.table, tuple(holdings), whereabouts(live, there, remembered))

    def _size(self, work: TableContext, table_format: TableFormat, state: State) -> Tally:
        every = {owner for owner, _ in table_format.roots(state)}
        with walked(work, table_format, state, every) as (_, survey):
            return survey.kept.all

    def restore(self, table: Table, snapshot: str, to: str, branch: str | None, tag: str | None) -> Restored:
        """Returns a snapshot that a tier has, by its id or tag there, as it can be read again: in the live table, or as
        a table of its own at a location. Raises UsageError where no tier has it.
        """
        work = self.places.table_context(table)
        live = work.source.load()
        tier, there, found = self._held(work, live, snapshot)
        with self.places.alone(work.root(live)), work.lease(live) as (leased, lease):
            restoring = Restoring(leased, tier, there, found, lease.check)
            if to == LIVE:
                kind = RefKind.TAG if branch is None else RefKind.BRANCH
                return restoring.to_live(branch or tag or f"restored-{found}", kind)
            if branch or tag:
                raise UsageError("a table of its own has no ref of the live one", hint="leave --to out")
            return self._to_place(restoring, absolute(to))

    def _to_place(self, restoring: Restoring, folder: str) -> Restored:
        stores = self.places.stores
        settings = stores.settings_of(TableName.at(folder))
        source = stores.settings_of(restoring.tier.table)
        return restoring.to_place(stores.open(settings), stores.copying(source, settings), folder)

    def _held(self, work: TableContext, live: State, snapshot: str) -> tuple[Tier, State, SnapshotId]:
        """Returns the first tier that has a snapshot, its table, and the snapshot's id."""
        for tier, there in histories(work, live):
            try:
                return tier, there, resolve(there, snapshot)
            except UsageError:
                continue
        raise UsageError(
            f"no tier has a snapshot {snapshot!r} of {live.table}",
            hint="`firnline tiers TABLE --list` shows what lives where",
        )
