"""Committing a run: what was planned and is still expired by a fresh decision, in one commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from firnline.errors import (
    BlastRadiusExceeded,
    RefusedForSafety,
)
from firnline.journal.events import OPEN, RunState
from firnline.journal.layout import RECORDS
from firnline.journal.runs import refuse_edited
from firnline.ops.history.ledger import note_expired
from firnline.ops.history.remember import RunHistory
from firnline.ops.history.tidy import clear_notes, tidy
from firnline.ops.neighbours.around import refuse_conflict
from firnline.ops.reachability.pointed import pointed_versions
from firnline.ops.readers.needs import reader_needs
from firnline.ops.runs.change import change, fence_off, version_of
from firnline.ops.runs.decision import decide_to_act
from firnline.ops.runs.drop import going_beside, narrowed, planned_beside, refuse_changed, refuse_gone_back
from firnline.ops.runs.forgotten import list_forgotten
from firnline.ops.runs.leased import LeasedRun
from firnline.ops.runs.lost_refs import refuse_lost_refs, what_landed
from firnline.ops.table.context import refuse_copy
from firnline.ops.tiers.archive import not_in_tier, refuse_unarchived
from firnline.ops.tiers.choosing import head_of
from firnline.plans.stages import CommitExpiry
from firnline.ports.catalogs import Attempt
from firnline.ports.formats import Edited, State, UndoWindow


@dataclass
class _Attempt:
    """Records each try before it is sent, and remembers the run as it moves."""

    leased: LeasedRun
    memory: RunHistory

    def edit(self, state: State) -> Edited | None:
        """Returns planned ∩ decided afresh: a snapshot that anything keeps now is not touched."""
        work, run = self.leased.work, self.leased.run
        work.same_table(state, run)
        refuse_copy(work.source.name, state)
        refuse_conflict(work, state)
        now = work.now()
        table_format, request, plan = work.source.format, run.request, run.plan
        pointed = pointed_versions(table_format, state)
        read = reader_needs(work, state, request, now)
        settled = decide_to_act(table_format, state, work.source.name, work.config, request, now, pointed, read)
        settled = narrowed(settled, table_format, state, request)
        refuse_changed(plan, settled)
        refuse_gone_back(plan, settled, state)
        snapshots = set(plan["expire"]) & set(settled.decision.expired)
        refs = set(plan["expire_refs"]) & set(settled.decision.expired_refs)
        staying = not_in_tier(work, run, state, snapshots, refs)
        snapshots, refs = snapshots - staying, {each for each in refs if head_of(state, each) not in staying}
        side_objects = planned_beside(plan) & going_beside(table_format, state, settled, snapshots, refs)
        forgets = any(isinstance(each, CommitExpiry) and each.forgets for each in run.stages)
        if not (snapshots or refs or side_objects or forgets):
            return None
        root = run.folder.root
        if work.root(state) != root:
            raise RefusedForSafety(
                f"{state.table} keeps the records of its runs in {work.root(state)}, this run is in {root}",
                hint="plan again; two places would know nothing of each other's runs",
            )
        remembered = self.memory.expiring(state, snapshots, settled, new=request.new_history)
        if not (snapshots or refs or side_objects or remembered.properties):
            return None  # another run forgot it already
        pinned = replace(remembered, properties={RECORDS: root, **remembered.properties})
        return table_format.expire(
            state, snapshots, refs, now, clean=request.clean, amendment=pinned, side_objects=side_objects
        )

    def before_send(self, base: State, edited: Edited, attempt: Attempt) -> None:
        self.leased.lease.renew()
        # A server that names the new metadata itself also clears away the old.
        forgotten = [] if attempt.proof["location"] is None else list(edited.forgotten)
        detail = {
            **attempt.proof,
            "removal": edited.removal.to_json(),
            "forgotten": forgotten,
            "history": self.memory.noted,
        }
        self.leased = self.leased.moved(RunState.COMMITTING, **detail)
        self.leased.lease.check()


def commit_run(leased: LeasedRun) -> LeasedRun:
    """Returns the run, committed; or cancelled where nothing was left to expire, with the metadata unchanged.

    A run that died while committing is first read back: whichever of its tries landed is the commit.
    """
    work, run = leased.work, leased.run
    if run.state not in OPEN:
        return leased
    refuse_refused(leased)
    settled = commit_landed(leased) or _none_can_follow(leased)
    if settled is not None:
        return settled
    refuse_edited(work.store, run)
    refuse_unarchived(run)
    attempt = _Attempt(leased, RunHistory(work, run.id))
    changed = change(work.source, attempt.edit, attempt.before_send, still=leased.lease.check)
    if changed is None:
        return cancelled(attempt.leased, "nothing is left to expire")
    return _committed(attempt.leased, attempt.leased.run.events[-1].detail)


def refuse_refused(leased: LeasedRun) -> None:
    """Raises where the plan says that its run is refused: another table is in doubt, or too much would go."""
    work, plan = leased.work, leased.run.plan
    if plan.get("conflict"):
        refuse_conflict(work, work.source.load())  # as it is now, with what to do about it
        raise RefusedForSafety(plan["conflict"], hint="plan again, now that it is settled")
    if plan.get("refused"):
        raise BlastRadiusExceeded(
            plan["refused"],
            hint="plan again with --at-most 50%, or with a larger --blast-radius, if that is really meant",
        )


def _none_can_follow(leased: LeasedRun) -> LeasedRun | None:
    """Returns the run, committed, where one of its tries lands after all while they are fenced off; else None.

    A process that was frozen before it sent would else send after us. A server that applies updates would take out
    also what we leave in the table because it was tagged between the two, and the purge follows our own commit. A
    pointer needs no fence: our own commit moves it.
    """
    applied = [event for event in leased.run.attempts if event.detail["location"] is None]
    return commit_landed(leased) if fence_off(leased, applied) else None


def cancelled(leased: LeasedRun, why: str) -> LeasedRun:
    """Returns the run, cancelled; or committed where one of its tries had landed, or lands before it is fenced off."""
    fence_off(leased, leased.run.attempts)
    return commit_landed(leased) or leased.moved(RunState.CANCELLED, why=why)


def commit_landed(leased: LeasedRun) -> LeasedRun | None:
    """Returns the run, committed, where one of its tries had landed before it could say so."""
    landed = _landed_before(leased)
    return None if landed is None else _committed(leased, landed)


def _landed_before(leased: LeasedRun) -> Mapping[str, Any] | None:
    """Returns the try that landed, of a run that died before it could say so.

    The catalog tells by what the try left behind. On a table that moved on so far that its log forgot, the snapshots
    tell: where all that the last try took out are gone, it counts as landed, whichever writer took them out; purge goes
    by reachability anyway.
    """
    state, source = leased.load(), leased.work.source
    for event in reversed(leased.run.attempts):
        if source.commits.landed(event.detail, version_of(state), leased.lease.check):
            return event.detail
    if leased.run.attempts:
        last, graph = leased.run.attempts[-1], source.load().graph  # one that was given up just now put all back
        gone = last.removal.ids
        if gone and not any(snapshot in graph for snapshot in gone):
            return last.detail
    return None


def _committed(leased: LeasedRun, detail: Mapping[str, Any]) -> LeasedRun:
    leased.lease.renew()
    work, state = leased.work, leased.work.source.load()
    late = list_forgotten(work, leased.run, state, detail["forgotten"])
    landed = what_landed(work.source, state, detail)
    note_expired(work, leased.run, detail, work.now())
    leased = leased.moved(RunState.COMMITTED, **{**detail, **landed, "forgotten_parts": late})
    tidy(work, state)
    clear_notes(work, state)
    refuse_lost_refs(leased.run, state.capabilities.undo is UndoWindow.AFTER_COMMIT)
    return leased
