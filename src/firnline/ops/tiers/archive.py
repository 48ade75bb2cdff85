"""The stage of a run between decision and commit: all that the tier is to have is there before the live table changes,
and still there before anything of it is deleted.
"""

from __future__ import annotations

from collections.abc import Set

from firnline.errors import RefusedForSafety
from firnline.journal.events import RunState
from firnline.journal.runs import Run, refuse_edited
from firnline.model.removals import Removal
from firnline.model.snapshots import SnapshotId
from firnline.ops.runs.leased import LeasedRun
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.choosing import choose_archive
from firnline.ops.tiers.handing import Handing
from firnline.ops.tiers.tier import Tier
from firnline.plans.plan import tally_json
from firnline.ports.catalogs import always
from firnline.ports.formats import State


def archive_run(leased: LeasedRun) -> LeasedRun:
    """Returns the run, archived: the tier has what the plan hands over, as far as the live table still has it. Raises
    ArchiveIncomplete where it could not be seen to be complete there: nothing is committed then.
    """
    run = leased.run
    if run.archive is None or run.state is not RunState.PLANNED:
        return leased
    refuse_edited(leased.work.store, run)
    state, tier = leased.load(), _tier(leased.work, run)
    snapshots = {each for each in run.archive["snapshots"] if each in state.graph}
    tags = {name for name in run.plan["expire_refs"] if name in state.refs and state.refs[name].snapshot in snapshots}
    handed = Handing(leased.work, state, tier, leased.lease.check).hand_over(snapshots, tags)
    leased.lease.renew()
    said = {"tier": tier.policy.name, "table": str(tier.table), "root": tier.policy.root}
    counts = {"copied": tally_json(handed.copied), "present": tally_json(handed.present)}
    return leased.moved(RunState.ARCHIVED, **said, **counts, metadata=handed.metadata, snapshots=sorted(snapshots))


def _tier(work: TableContext, run: Run) -> Tier:
    """Returns the tier that the plan names. Raises RefusedForSafety where it lies elsewhere by now."""
    said = run.archive or {}
    tier = work.open_tier(work.source.name, said["tier"])
    if (tier.policy.root, str(tier.table)) != (said["root"], said["table"]):
        raise RefusedForSafety(
            f"the tier {said['tier']} has moved since {run.id} was planned: from {said['root']} to {tier.policy.root}",
            hint="plan again",
        )
    return tier


def refuse_unarchived(run: Run) -> None:
    """Raises RefusedForSafety unless the tier has all that the plan hands over."""
    if run.archive is not None and run.archived is None:
        raise RefusedForSafety(f"{run.id} hands snapshots to a tier, and has not done so", hint="`firnline resume RUN`")


def not_in_tier(work: TableContext, run: Run, state: State, expired: Set[str], refs: Set[str]) -> set[SnapshotId]:
    """Returns those snapshots that have to be handed over by what is configured and true now, and were not: they stay.

    1. A plan hands nothing over, or leaves out what a day's newer snapshot stands for.
    2. The operator names a tier, or another engine takes that newer snapshot.
    3. The run commits.
    """
    wanted = choose_archive(work, state, run.request, expired, refs)
    held = set() if run.archived is None else set(run.archived.detail["snapshots"])
    return set() if wanted is None else set(wanted.snapshots) - held


def refuse_lost_archive(work: TableContext, run: Run) -> None:
    """Raises ArchiveIncomplete where the tier does not have any more what the run took out of the live table: its last
    bytes may be those that are about to be deleted.
    """
    if run.archived is None:
        return
    gone = set((run.removal or Removal()).ids) & set(run.archived.detail["snapshots"])
    tier = _tier(work, run)
    there = tier.load(run.uuid)
    if there is None:
        raise RefusedForSafety(
            f"{tier.table} is gone, which holds what {run.id} took out", hint="bring it back, or `firnline undo RUN`"
        )
    Handing(work, there, tier, always).refuse_incomplete(there, gone)
