"""How much a plan hands to a tier: all that its snapshots are made of, told before anything is copied."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from firnline.model.files import Root, Tally
from firnline.ops.table.context import TableContext
from firnline.plans.plan import Plan
from firnline.plans.stages import ArchiveSnapshots, Stage
from firnline.ports.engines import Territory
from firnline.ports.formats import State


def with_archive_size(work: TableContext, plan: Plan, state: State) -> Plan:
    """Returns the plan with the files and bytes that are handed over; as it is where nothing is."""
    if plan.archive is None:
        return plan
    size = archive_size(work, state, frozenset(plan.archive.snapshots))
    return replace(plan, stages=tuple(_sized(each, size) for each in plan.stages))


def archive_size(work: TableContext, state: State, snapshots: frozenset[str]) -> Tally:
    """Returns all files that some snapshots are made of, each once."""
    table_format = work.source.format
    engine = work.choose(state, table_format, "auto")
    starts = [Root(file, True, owner) for owner, file in table_format.roots(state) if owner in snapshots]
    with closing(engine.survey(starts, table_format.expand, Territory(None))) as survey:
        return survey.kept.all


def _sized(stage: Stage, size: Tally) -> Stage:
    return replace(stage, files=size.files, bytes=size.bytes) if isinstance(stage, ArchiveSnapshots) else stage
