"""How much a plan hands to a tier, and what that costs: told before anything is copied."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from firnline.model.files import Tally
from firnline.model.snapshots import SnapshotId
from firnline.ops.table.context import TableContext
from firnline.plans.plan import Plan
from firnline.plans.stages import ArchiveSnapshots, Stage
from firnline.ports.engines import Survey
from firnline.ports.formats import State


def with_archive_size(work: TableContext, plan: Plan, state: State) -> Plan:
    """Returns the plan with what has to be copied, at most, and its costs; as it is where nothing is handed over."""
    if plan.archive is None:
        return plan
    from firnline.policy.prices import costs_of, price_list

    small, large = to_copy(work, state, frozenset(plan.archive.snapshots), plan.archive.tier)
    after = 0 if plan.kept is None else plan.kept.all.bytes
    before = after + plan.victims.all.bytes
    objects = large if plan.archive.bundle is None else _bundled(large, plan.archive.bundle)
    costs = costs_of(price_list(work.config.prices), plan.archive.storage_class, before, after, small, objects)
    archive = replace(plan.archive, small=small, large=large, costs=costs)
    return replace(plan, archive=archive, stages=tuple(_sized(each, small + large) for each in plan.stages))


def to_copy(work: TableContext, state: State, snapshots: Set[SnapshotId], tier: str) -> tuple[Tally, Tally]:
    """Returns the small and the large files that some snapshots are made of and that the tier may not have: what is
    named by a manifest that lies there is there too. Where the tier has bundles, those that go into them are large.
    """
    from firnline.ops.tiers.finding import open_for
    from firnline.ops.tiers.pruning import NewInTier
    from firnline.ops.tiers.transfer import walked
    from firnline.tiers.places import TierPlaces

    table_format, opened = work.source.format, open_for(work, state, tier)
    expand = NewInTier(table_format.expand, TierPlaces(opened.policy.root), opened.store)
    with walked(work, table_format, state, snapshots, expand) as (_, survey):
        if opened.bundles is None:
            return _by_size(survey)
        leaves = sum((survey.kept.by_kind.get(kind, Tally()) for kind in opened.leaves), Tally())
        every = survey.kept.all
        return Tally(every.files - leaves.files, every.bytes - leaves.bytes), leaves


def _bundled(files: Tally, bundle: int) -> Tally:
    return Tally(-(-files.bytes // bundle), files.bytes)


def _by_size(survey: Survey) -> tuple[Tally, Tally]:
    import pyarrow.compute as pc

    every, small = survey.kept.all, Tally()

    from firnline.policy.prices import SMALLEST

    for batch in survey.kept_batches():
        sizes = batch.column("size")
        few = sizes.filter(pc.less(pc.fill_null(sizes, 0), SMALLEST))
        small += Tally(len(few), pc.sum(few).as_py() or 0)
    return small, Tally(every.files - small.files, every.bytes - small.bytes)


def _sized(stage: Stage, size: Tally) -> Stage:
    return replace(stage, files=size.files, bytes=size.bytes) if isinstance(stage, ArchiveSnapshots) else stage
