"""Purging: the only use case that deletes table files. It deletes what the written list names, and less."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from firnline.errors import CollectionForbidden, DeletesFailed, Interrupted
from firnline.journal.lease import Lease
from firnline.journal.outcomes import Outcome, Row, failed_paths, outcome_keys, outcome_totals, write_outcomes
from firnline.journal.parts import part_keys, read_part, read_sound_parts, refuse_unsealed
from firnline.journal.runs import Run, in_commit_order
from firnline.journal.states import RunState
from firnline.model.files import Tally
from firnline.model.locations import identity
from firnline.model.times import format_instant
from firnline.ops.built_on import keeps_all_files, refuse_lost_refs
from firnline.ops.newcomers import Newcomers
from firnline.ops.workplace import Workplace, same_table
from firnline.ports.delete import Delete, DeleteMany
from firnline.ports.formats import State, UndoWindow
from firnline.ports.progress import Progress

SEND_ROWS = 1_000
_TELL_EVERY = 100
_SPARED = "needed again: reachable from what the table, a hold or an undoable run names now"


@dataclass(frozen=True, slots=True)
class Shovel:
    """The power to delete: which objects, and by whom they are deleted."""

    delete: Delete
    many: DeleteMany


def purge_run(work: Workplace, lease: Lease, run: Run, shovel: Shovel) -> Run:
    """Returns the run, done. Raises DeletesFailed where some files are still there; the next purge tries them again.

    Before each batch the table is read again; whatever came back since the plan is spared, with the reason. A crash
    at any point loses nothing: the part is done again, and what is gone already counts as missing.
    """
    refuse_lost_refs(run, work.source.load().capabilities.undo is UndoWindow.AFTER_COMMIT)
    refuse_unsealed(work.store, run.folder.victims, run.victim_seals)
    if run.state is RunState.COMMITTED:
        run = run.moved(work.store, RunState.PURGING, work.now())
    newcomers = _newcomers(work, run)
    done = outcome_keys(work.store, run.folder)
    account = _Account(work.progress, outcome_totals(work.store, run.folder), run.plan["victims"]["files"])
    for key in part_keys(work.store, run.folder.victims):
        part = key.rpartition("/")[2].removesuffix(".parquet")
        stop_if_asked(work, run)
        _purge_part(work, lease, run, shovel, newcomers, key, done.get(part, []), account)
    return _finish(work, lease, run)


class _Account:
    """Tells how many files came to their end; what an earlier purge did counts, what failed there does not."""

    def __init__(self, progress: Progress, before: Mapping[str, Tally], planned: int) -> None:
        self._progress = progress
        self._ended = sum(tally.files for outcome, tally in before.items() if outcome != Outcome.FAILED)
        self._planned = planned

    def watched(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yields the rows as they come; metadata that fell off the log comes on top of what was planned."""
        for row in rows:
            yield row
            self._ended += 1
            if self._ended % _TELL_EVERY == 0 or self._ended >= self._planned:
                self._progress.step("purging files", self._ended, max(self._ended, self._planned))


def stop_if_asked(work: Workplace, run: Run) -> None:
    """Stops between two batches where somebody asked for it: the run is whole and can go on at any time."""
    if work.interrupted():
        raise Interrupted(f"stopped between two batches of {run.id}", hint=f"`firnline resume {run.id}` goes on")


def blocked_by(run: Run, runs: list[Run]) -> Run | None:
    """Returns the earlier run that must be finished first: what it may still bring back shares files with this one.

    One that will never purge is not waited for: what it took out is a root of every later run for good.
    """
    for earlier in in_commit_order(runs):
        if earlier.id.stamp == run.id.stamp:
            return None
        if not earlier.is_finished and not keeps_all_files(earlier):
            return earlier
    return None


def waits_for_grace(run: Run, now_ms: int) -> str | None:
    """Returns until when readers still have their grace, or None where it is over."""
    due = run.purge_due_ms
    return format_instant(due) if due is not None and now_ms < due else None


def _purge_part(
    work: Workplace,
    lease: Lease,
    run: Run,
    shovel: Shovel,
    newcomers: Newcomers,
    key: str,
    before: list[str],
    account: _Account,
) -> None:
    """Deletes one part of the list, or what of it failed before. Nothing is sent before the part was checked again."""
    name = key.rpartition("/")[2]
    table = _due(read_part(work.store, key, run.victim_seals[name]), work, before)
    if not len(table):
        return
    lease.renew()
    look_again(work, run, newcomers)
    rows = list(account.watched(_ends(table, lease, shovel, newcomers)))
    part = name.removesuffix(".parquet")
    write_outcomes(work.store, run.folder, part, len(before) + 1, rows)


def _due(part: Any, work: Workplace, before: list[str]) -> Any:
    """Returns what of a part is still to do: all of it, or what failed before. Only the written list names files."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not before:
        return part
    failed = failed_paths(work.store, before[-1])
    return part.filter(pc.is_in(part.column("key"), value_set=pa.array(failed, pa.string())))


def look_again(work: Workplace, run: Run, newcomers: Newcomers) -> None:
    """Reads the table afresh and walks what is new. Raises where it is another table, or says that nothing may go."""
    state = work.source.load()
    same_table(state, run)
    now = work.now()
    forbidden = state.forbidden or _table_hold(state, now)
    if forbidden:
        raise CollectionForbidden(
            f"nothing of {state.table} may be removed now: {forbidden}",
            hint="the run stays as it is; `firnline purge` goes on once that is lifted",
        )
    newcomers.add(file for _, file in work.source.format.roots(state))
    for name in work.source.format.metadata_files(state):
        newcomers.reach(identity(name))
    for removal in _may_come_back(work, state, run, now):
        revived = work.source.format.with_removal(state, removal)
        newcomers.add(file for _, file in work.source.format.roots(revived))


def _table_hold(state: State, now: int) -> str | None:
    held = [hold.name for hold in state.holds if hold.snapshot is None and hold.in_force(now)]
    return f"the hold {held[0]} on the whole table is in force" if held else None


def _may_come_back(work: Workplace, state: State, run: Run, now: int) -> Iterator[dict[str, Any]]:
    """Yields what other undoable runs took out, and what of any run's removal a hold names: also of runs that are
    done, since the files of a held snapshot outlive the run that took it out.
    """
    held = {hold.snapshot for hold in state.holds if hold.snapshot is not None and hold.in_force(now)}
    for each in work.runs(state):
        if each.id.stamp != run.id.stamp:
            yield from map(dict, each.removals)
        for event in each.attempts if held else ():
            yield _of_snapshots(event.detail["removal"], held)


def _of_snapshots(removal: Mapping[str, Any], wanted: set[str]) -> dict[str, Any]:
    """Returns what of a removal belongs to some snapshots: themselves, their statistics, all that names them."""
    lists = {name: entries for name, entries in removal.items() if isinstance(entries, list)}
    kept = {name: [e for e in entries if str(e.get("snapshot-id")) in wanted] for name, entries in lists.items()}
    return {"snapshots": [], **kept, "snapshot-log": []}


def _newcomers(work: Workplace, run: Run) -> Newcomers:
    # A part that was changed since only means that more is walked again: the safe direction.
    parts = read_sound_parts(work.store, run.folder.walked, run.plan["parts"]["walked"])
    walked = (name for table in parts for name in table.column("identity").to_pylist())
    return Newcomers(work.source.format.expand, walked)


def _ends(table: Any, lease: Lease, shovel: Shovel, newcomers: Newcomers) -> Iterator[Row]:
    """Yields one row per file: spared where it came back, else what the store said."""
    rows = list(zip(*(table.column(name).to_pylist() for name in ("key", "kind", "size")), strict=True))
    for start in range(0, len(rows), SEND_ROWS):
        chunk = rows[start : start + SEND_ROWS]
        victims = [row for row in chunk if not newcomers.spare(row[0])]
        for key, kind, size in chunk:
            if newcomers.spare(key):
                yield Row(key, kind, size, Outcome.SPARED, _SPARED)
        lease.renew()
        outcomes = shovel.many.delete_many([key for key, _, _ in victims], shovel.delete, lease.check)
        for (key, kind, size), said in zip(victims, outcomes, strict=True):
            yield Row(key, kind, size, Outcome(said.fate.value), said.error)


def _finish(work: Workplace, lease: Lease, run: Run) -> Run:
    totals = outcome_totals(work.store, run.folder)
    failed = totals.get(Outcome.FAILED)
    if failed is not None:
        raise DeletesFailed(
            f"{failed.files:,} files of {run.id} could not be deleted",
            hint=f"`firnline purge {run.id}` tries them again",
        )
    lease.renew()
    said = {outcome: {"files": tally.files, "bytes": tally.bytes} for outcome, tally in totals.items()}
    return run.moved(work.store, RunState.DONE, work.now(), outcomes=said)
