"""The stage of a run between decision and commit: all that the tier is to have is there before the live table changes,
and still there before anything of it is deleted.
"""

from __future__ import annotations

from collections.abc import Set
from shlex import quote

from firnline.errors import ArchiveIncomplete, RefusedForSafety
from firnline.journal.events import OPEN, RunState
from firnline.journal.runs import Run, refuse_edited
from firnline.model.files import Tally
from firnline.model.removals import Removal
from firnline.model.snapshots import SnapshotId
from firnline.ops.runs.leased import LeasedRun
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.choosing import choose_archive
from firnline.ops.tiers.comparing import refuse_unlike
from firnline.ops.tiers.finding import open_for
from firnline.ops.tiers.handing import HandedOver, Handing
from firnline.ops.tiers.tier import Tier
from firnline.plans.plan import tally_json
from firnline.ports.formats import State


def archive_run(leased: LeasedRun) -> LeasedRun:
    """Returns the run, archived: the tier has what the plan hands over, as far as the live table still has it. Raises
    ArchiveIncomplete where it could not be seen to be complete there: nothing is committed then.

    1. A process archives, and dies before it commits.
    2. The tier's table is dropped, or a file of it is damaged.
    3. Days later another process takes the run up: it looks at every copy once more, however the record has it.
    """
    run = leased.run
    if run.archive is None or run.state not in OPEN:
        return leased
    refuse_edited(leased.work.store, run)
    state, again = leased.load(), run.state is not RunState.PLANNED
    snapshots = {each for each in run.archive["snapshots"] if each in state.graph}
    if again and not snapshots:
        return leased  # the commit had landed
    tags = {name for name in run.plan["expire_refs"] if name in state.refs and state.refs[name].snapshot in snapshots}
    tier = _tier(leased.work, run, state)
    handing = Handing(leased.work, state, tier, leased.lease.check)
    handed = handing.hand_over(snapshots, tags, doubting=again) if snapshots else HandedOver("", Tally(), Tally())
    leased.lease.renew()
    return leased if again else _moved(leased, tier, snapshots, handed)


def _moved(leased: LeasedRun, tier: Tier, snapshots: Set[SnapshotId], handed: HandedOver) -> LeasedRun:
    said = {"tier": tier.policy.name, "table": str(tier.table), "root": tier.policy.root}
    counts = {"copied": tally_json(handed.copied), "present": tally_json(handed.present)}
    return leased.moved(RunState.ARCHIVED, **said, **counts, metadata=handed.metadata, snapshots=sorted(snapshots))


def _tier(work: TableContext, run: Run, state: State) -> Tier:
    """Returns the tier that the plan names. Raises RefusedForSafety where it, or the table in it, is another by now."""
    said = run.archive or {}
    tier = open_for(work, state, said["tier"], run.plan["location"])
    found = f"{tier.table} at {tier.policy.root}"
    if found != f"{said['table']} at {said['root']}":
        raise RefusedForSafety(
            f"the tier has moved since {run.id} was planned: from {said['table']} at {said['root']} to {found}",
            hint="bring it back; before the commit you can plan again, after it `firnline undo RUN`",
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


def refuse_lost_archive(leased: LeasedRun) -> None:
    """Raises ArchiveIncomplete where the tier does not have any more what the run took out of the live table, byte for
    byte: what is about to be deleted may be the last of it.
    """
    work, run = leased.work, leased.run
    handed = set() if run.archived is None else set(run.archived.detail["snapshots"])
    gone = set((run.removal or Removal()).ids) & handed
    if not gone:
        return
    tier = _tier(work, run, leased.load())
    there = tier.load()
    if there is None:
        raise RefusedForSafety(
            f"{tier.table} is gone, which holds what {run.id} took out", hint="bring it back, or `firnline undo RUN`"
        )
    handing = Handing(work, there, tier, leased.lease.check)
    try:
        handing.refuse_incomplete(there, gone)
        refuse_unlike(handing, run)
    except ArchiveIncomplete as problem:
        raise ArchiveIncomplete(
            problem.message,
            hint=f"`firnline undo {quote(str(run.id))}`, then hand it over again; what went on to another tier comes"
            f" back by `firnline restore TABLE SNAPSHOT --to {tier.policy.name}`",
        ) from problem
