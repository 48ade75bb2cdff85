"""Opening tiers, and what is asked of them: `archive` and `tiers`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from firnline.app.catalogs import absolute
from firnline.app.naming import Table
from firnline.errors import PolicyError, UsageError
from firnline.formats.registry import kit_named
from firnline.model.files import Tally
from firnline.model.snapshots import RefKind, SnapshotId
from firnline.ops.history.reading import expired_snapshots
from firnline.ops.marks.tags import resolve
from firnline.ops.reachability.pointed import pointed_versions
from firnline.ops.readers.needs import reader_needs
from firnline.ops.runs.decision import decide_to_act
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.bundling import Bundles
from firnline.ops.tiers.choosing import choose_archive, head_of
from firnline.ops.tiers.finding import histories, open_for
from firnline.ops.tiers.handing import Handing
from firnline.ops.tiers.restoring import Restored, Restoring
from firnline.ops.tiers.tier import Tier, tier_of
from firnline.ops.tiers.transfer import walked
from firnline.ops.tiers.waking import Awaited, Inquiry, Waking, notes_of
from firnline.ops.tiers.whereabouts import TableTiers, holding, price_of, whereabouts
from firnline.plans.plan import tally_json
from firnline.plans.request import Request
from firnline.policy.prices import price_list
from firnline.policy.tiers import LIVE, USUAL_BUNDLE, TierPolicy, tier_named
from firnline.ports.catalogs import Still, TableName, TableSource, always
from firnline.ports.formats import State, TableFormat
from firnline.ports.stores import Read
from firnline.tiers.belonging import history_of
from firnline.tiers.bundles.index import PackedIndex, bundles_folder
from firnline.tiers.bundles.store import BundledStore, SeenBundles

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
    catalog, stores = places.catalogs.open(tier), places.stores
    settings = store_settings(places.catalogs.settings(tier).properties)
    live = stores.settings_of(table)
    plain = stores.open(settings)
    bundles = None if policy.bundle is None else _bundles(places, policy, table, uuid, settings)
    return Tier(
        policy=policy,
        uuid=uuid,
        table=TableName(tier, table.namespace, table.name),
        catalog=catalog,
        store=plain if bundles is None else BundledStore(plain, bundles.index, stores.members(settings)),
        format=kit_named(catalog.format).format(read_only(plain)),
        copy=stores.copying(live, settings, policy.storage_class),
        back=stores.copying(settings, live, packed=None if bundles is None else bundles.index),
        verify=stores.verifying(settings),
        many=partial(places.engines.copy_many, table, policy.root),
        ranges=stores.ranges(settings),
        recorded=lambda name, state: places.table_context(str(name)).recorded(state),
        bundles=bundles,
    )


def _bundles(places: Places, policy: TierPolicy, table: TableName, uuid: str, settings: Mapping[str, str]) -> Bundles:
    stores = places.stores
    live = stores.settings_of(table)
    return Bundles(
        root=policy.root,
        limit=policy.bundle or USUAL_BUNDLE,
        plain=stores.open(settings),
        index=PackedIndex(stores.open(settings), bundles_folder(policy.root, uuid)),
        pack=stores.packing(live, settings, policy.storage_class),
        repack=stores.packing(settings, settings, policy.storage_class),
        thaw=stores.thawing(settings),
        sources=stores.verifying(live),
    )


def packed_files(places: Places, source: TableSource) -> Read | None:
    """Returns the store to read a deep tier's own table from: a packed file counts as there only if its bundle is
    there. None for any other table, whose files are objects.
    """
    tiers, name = places.config.tiers, source.name
    if name.catalog not in tiers or tier_named(tiers, name.catalog).bundle is None:
        return None
    state = source.load()
    opened = open_tier(places, name, name.catalog, history_of(state.uuid, state.properties)).store
    return SeenBundles(opened) if isinstance(opened, BundledStore) else opened


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
        now_ms, name = work.now(), work.source.name
        read = reader_needs(work, state, request, now_ms)
        settled = decide_to_act(work.source.format, state, name, work.config, request, now_ms, pointed, read)
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
        """Returns which tiers have each known snapshot of a table (the table itself counts as one), what each tier
        holds, and which restores were asked for. Changes nothing.
        """
        work = self.places.table_context(table)
        live, prices = work.source.load(), price_list(work.config.prices)
        found = {tier.policy.name: (tier, state) for tier, state in histories(work, live)}
        remembered = expired_snapshots(work.source, live, work.store)
        holdings = [holding(LIVE, live, self._size(work, work.source.format, live), price_of(prices, None))]
        for name, (tier, state) in found.items():
            size = self._size(work, tier.format, state)
            holdings.append(holding(name, state, size, price_of(prices, tier.policy.storage_class)))
        there = {name: state for name, (_, state) in found.items()}
        asked = [note for tier, _ in found.values() if tier.bundles for note in notes_of(tier.bundles, tier.store)]
        return TableTiers(live.table, tuple(holdings), whereabouts(live, there, remembered), tuple(asked))

    def _size(self, work: TableContext, table_format: TableFormat, state: State) -> Tally:
        every = {owner for owner, _ in table_format.roots(state)}
        with walked(work, table_format, state, every) as (_, survey):
            return survey.kept.all

    def restore(
        self, table: Table, snapshot: str, to: str, branch: str | None, tag: str | None, inquiry: Inquiry | None
    ) -> Restored | Awaited:
        """Returns a snapshot that a tier has, by its id or tag there, as it can be read again: in the live table, in
        another tier's, or as a table of its own at a location; or what has to be waited for first. Raises UsageError
        where no tier has it.
        """
        work = self._into(table, to)
        live = work.source.load()
        tier, there, found = self._held(work, live, snapshot)
        inside = to == LIVE or to in work.config.tiers
        if not inside and (branch or tag):
            raise UsageError("a table of its own has no ref of the live one", hint="leave --to out")
        with self._woken(Restoring(work, tier, there, found, always), to, inquiry) as awaited:
            if awaited is not None:
                return awaited
            with self.places.alone(work.root(live)), work.lease(live) as (leased, lease):
                restoring = Restoring(leased, tier, there, found, lease.check)
                if not inside:
                    return self._to_place(restoring, absolute(to))
                kind = RefKind.TAG if branch is None else RefKind.BRANCH
                return restoring.to_live(branch or tag or f"restored-{found}", kind)

    def _into(self, table: Table, to: str) -> TableContext:
        """Returns the table that is changed, or asked: the live one, or the one of a tier that it goes back to."""
        work = self.places.table_context(table)
        if to not in work.config.tiers:
            return work
        tier = open_for(work, work.source.load(), to)
        if tier.find() is None:
            raise UsageError(f"the tier {to} has no table of that history", hint="restore to a place: `--to PATH`")
        return self.places.table_context(str(tier.table))

    @contextmanager
    def _woken(self, restoring: Restoring, to: str, inquiry: Inquiry | None) -> Iterator[Awaited | None]:
        """Hands out what has to be waited for; None where all can be read. It notes that the snapshot came when the
        block is left without an error.
        """
        tier, found = restoring.tier, restoring.snapshot
        tier.refuse_unbundled()
        if tier.bundles is None:
            if inquiry is not None:
                raise UsageError(f"{tier.table} can be read at once", hint="leave --case and --by out")
            yield None
            return
        if inquiry is None:
            raise UsageError(
                f"{found} sleeps in {tier.table}: it is restored for a case, by a person", hint="name --case and --by"
            )
        work = restoring.work
        waking = Waking(tier.bundles, tier.store, work.progress, work.now)
        needed = restoring.bundles(tier.bundles)
        awake = waking.wake(needed, found, to, inquiry)
        yield None if awake.is_all else Awaited(found, str(tier.table), awake, inquiry)
        if awake.is_all:
            waking.note("restored", needed, found, to, inquiry)

    def _to_place(self, restoring: Restoring, folder: str) -> Restored:
        stores, tier = self.places.stores, restoring.tier
        settings = stores.settings_of(TableName.at(folder))
        packed = None if tier.bundles is None else tier.bundles.index
        copy = stores.copying(stores.settings_of(tier.table), settings, packed=packed)
        return restoring.to_place(stores.open(settings), copy, folder)

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
