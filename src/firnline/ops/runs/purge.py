"""Purging: the only use case that deletes data files. It deletes what the written list names, and less. Metadata of a
format without compare-and-swap is taken away by its commits (`ports.retire`).
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from shlex import quote
from typing import Any

from firnline.errors import DeletesFailed, Interrupted, TakenUpAgain
from firnline.history.ledger import End
from firnline.journal.events import RunState
from firnline.journal.outcomes import (
    Outcome,
    Row,
    failed_paths,
    outcome_keys,
    outcome_totals,
    read_rows,
    write_outcomes,
)
from firnline.journal.parts import part_keys, read_part, refuse_changed_parts
from firnline.journal.runs import Run, in_commit_order, refuse_edited
from firnline.model.files import Tally
from firnline.model.times import format_instant
from firnline.ops.history.ledger import note_end
from firnline.ops.runs.guard import (
    SPARED_IN_VAIN,
    Guard,
    ListedFile,
    look_and_refuse_taken_up,
    refuse_emptied,
    refuse_lost,
    without_spared_in_vain,
)
from firnline.ops.runs.leased import LeasedRun
from firnline.ops.runs.lost_refs import keeps_all_files, refuse_lost_refs
from firnline.ops.runs.moving import goes_on
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.archive import refuse_lost_archive
from firnline.plans.kinds import ERASURE, ORPHANS
from firnline.ports.abilities import EmptiesFolders
from firnline.ports.delete import Delete, DeleteMany, Doomed, Fate, RemoveEmpty
from firnline.ports.formats import UndoWindow
from firnline.ports.progress import PURGING_FILES, Progress


@contextmanager
def heap_at_rest() -> Iterator[None]:
    """While the block runs, the collector looks at what is new alone: not at the modules and documents that were there.

    A purge makes a few objects for each file, and each full collection costs what a thousand deletes do. Afterwards all
    objects are collected as before, so a process that lives long keeps nothing.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def remove_emptied(leased: LeasedRun, folders: RemoveEmpty) -> None:
    """Removes each folder that the run took the last file from, and those around it, if nothing at all is in them.

    A writer that made a folder and has not yet put its file there loses the folder, not a file: it fails and makes the
    folder again. That is why the table must ask for it.
    """
    work, table_format = leased.work, leased.work.source.format
    if not isinstance(table_format, EmptiesFolders):
        return
    state = work.source.load()
    bounds = work.bounds(state, leased.run, searched=leased.run.kind == ORPHANS)
    emptied = table_format.emptied(state, _folders(work, leased.run))
    for folder in (each for each in emptied if bounds.forbids(each) is None):
        leased.lease.renew()
        leased.lease.check()
        folders.remove_empty(folder)


def _folders(work: TableContext, run: Run) -> Iterator[str]:
    """Yields the folder of each file on the written list, once for each part of it."""
    for key in part_keys(work.store, run.folder.victims):
        part = read_part(work.store, key, run.victim_seals[key.rpartition("/")[2]])
        yield from {name.rpartition("/")[0] for name in part.column("key").to_pylist()}


_TELL_EVERY = 100
_NOT_SENT = "the purge was stopped before"
_OUTCOMES = {
    Fate.DELETED: Outcome.DELETED,
    Fate.MISSING: Outcome.MISSING,
    Fate.CHANGED: Outcome.SPARED,
    Fate.FAILED: Outcome.FAILED,
}


@dataclass(frozen=True, slots=True)
class Deleter:
    """The power to delete: which objects, and by whom they are deleted; and what removes folders that are empty."""

    delete: Delete
    many: DeleteMany
    folders: RemoveEmpty


def purge_run(leased: LeasedRun, deleter: Deleter, guard: Guard) -> LeasedRun:
    """Returns the run, done. Raises DeletesFailed where some files are still there; the next purge tries them again.

    Before each batch the table is read again; whatever came back since the plan is spared, with the reason. A crash
    at any point loses nothing: the part is done again, and what is gone already counts as missing.
    """
    work, run, state = leased.work, leased.run, leased.work.source.load()
    refuse_lost_refs(run, state.capabilities.undo is UndoWindow.AFTER_COMMIT)
    refuse_emptied(work.source.format, state, run)  # while the run can still be undone
    refuse_edited(work.store, run)
    refuse_lost_archive(leased)
    refuse_changed_parts(work.store, run.folder.victims, run.victim_seals)
    is_carried_on = run.state is not RunState.COMMITTED
    if is_carried_on:
        goes_on(work, run)
    else:
        guard.look_again()  # a purge that may not begin ends no undo
        leased = leased.moved(RunState.PURGING)
    _Purge(leased, deleter, guard, is_carried_on).all_parts()
    return _finish(leased, deleter)


@dataclass(frozen=True, slots=True)
class _Batch:
    """A part of the list, and what became of its files in one attempt."""

    part: str
    attempt: int
    rows: Sequence[Row]


@dataclass
class _Purge:
    """One pass over the written list. `last` is the batch before, which each look looks back at.

    `in_doubt`: an earlier process may have died in a batch, with some of it deleted, or before it looked back at one.
    """

    leased: LeasedRun
    deleter: Deleter
    guard: Guard
    in_doubt: bool
    last: _Batch | None = None

    def all_parts(self) -> None:
        store, run = self.leased.work.store, self.leased.run
        done = outcome_keys(store, run.folder)
        account = _Account(self.leased.work.progress, outcome_totals(store, run.folder), run.plan["victims"]["files"])
        with heap_at_rest():
            for batch in self._recorded_last(done) if self.in_doubt else ():
                self._look(batch)
            for key in part_keys(store, run.folder.victims):
                self._stop_if_asked()
                self._part(key, done.get(_part_of(key), []), account)
        self._look_back()

    def _part(self, key: str, before: list[str], account: _Account) -> None:
        """Purges one part of the list, or what of it failed before. Nothing is sent before the part was checked again;
        the same look tells whether the last part took what was taken up meanwhile.
        """
        work, run = self.leased.work, self.leased.run
        table = _due(read_part(work.store, key, run.victim_seals[key.rpartition("/")[2]]), work, before)
        if not len(table):
            return
        self.leased.lease.renew()
        self._look(self.last)
        rows = list(account.watched(_ends(table, self.leased, self.deleter, self.guard)))
        if self.in_doubt:
            rows = without_spared_in_vain(work, rows)
            self.in_doubt = bool(before)  # the process that died got no further than the first part without a record
        self.last = self._recorded(_Batch(_part_of(key), len(before) + 1, rows))
        with self._telling_once(self.last):
            refuse_lost(work, run, [row.key for row in rows if row.why == SPARED_IN_VAIN])
        if rows[-1].why == _NOT_SENT:
            self._stop_if_asked()

    def _recorded(self, batch: _Batch) -> _Batch:
        write_outcomes(self.leased.work.store, self.leased.run.folder, batch.part, batch.attempt, batch.rows)
        return batch

    def _recorded_last(self, done: Mapping[str, list[str]]) -> Iterator[_Batch]:
        """Yields what an earlier process may have recorded last: the part with the highest number, or any of which some
        failed and was tried again. How often says nothing: each pass that is cut leaves later parts behind.
        """
        for part in sorted(part for part in done if part == max(done) or len(done[part]) > 1):
            yield _Batch(part, len(done[part]), read_rows(self.leased.work.store, done[part][-1]))

    def _look(self, batch: _Batch | None) -> None:
        """Looks at the table, and back at a batch."""
        with self._telling_once(batch):
            rows = () if batch is None else batch.rows
            look_and_refuse_taken_up(self.leased.work, self.leased.run, self.guard, rows)

    @contextmanager
    def _telling_once(self, batch: _Batch | None) -> Iterator[None]:
        """What a batch took of what was taken up is told once: the record of another attempt, of what had failed, says
        that it was.
        """
        try:
            yield
        except TakenUpAgain:
            if batch is not None:
                failed = [row for row in batch.rows if row.outcome is Outcome.FAILED]
                self._recorded(_Batch(batch.part, batch.attempt + 1, failed))
            raise

    def _stop_if_asked(self) -> None:
        """Stops between two batches if the operator asked for it: the run is whole and can go on at any time."""
        if self.leased.work.interrupted():
            self._look_back()
            run = self.leased.run.id
            raise Interrupted(
                f"stopped between two batches of {run}", hint=f"`firnline resume {quote(str(run))}` goes on"
            )

    def _look_back(self) -> None:
        """Looks at the table once more, where no other batch follows that would."""
        if self.last is not None:
            self._look(self.last)


def _part_of(key: str) -> str:
    return key.rpartition("/")[2].removesuffix(".parquet")


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
                self._progress.step(PURGING_FILES, self._ended, max(self._ended, self._planned))


def blocked_by(run: Run, runs: list[Run]) -> Run | None:
    """Returns the earlier run that must be finished first: what it may still bring back shares files with this one.

    One that will never purge is not waited for: what it took out is a root of every later run for good. Nor is an
    erasure, which brings nothing back.
    """
    if run.kind == ERASURE:
        return None
    for earlier in in_commit_order([each for each in runs if each.kind == run.kind]):
        if earlier.id.stamp == run.id.stamp:
            return None
        if not earlier.is_finished and not keeps_all_files(earlier):
            return earlier
    return None


def waits_for_grace(run: Run, now_ms: int) -> str | None:
    """Returns until when readers still have their grace, or None where it is over."""
    due = run.purge_due_ms
    return format_instant(due) if due is not None and now_ms < due else None


def _due(part: Any, work: TableContext, before: list[str]) -> Any:
    """Returns what of a part is still to do: all of it, or what failed before. Only the written list names files."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not before:
        return part
    failed = failed_paths(work.store, before[-1])
    return part.filter(pc.is_in(part.column("key"), value_set=pa.array(failed, pa.string())))


def _ends(table: Any, leased: LeasedRun, deleter: Deleter, guard: Guard) -> Iterator[Row]:
    """Yields one row per file: spared where it must stay after all, else what the store said. If the operator asks for
    a stop, those that were not sent count as failed: the next purge tries them.
    """
    lines, lease = _lines(table), leased.lease
    for start in range(0, len(lines), deleter.many.rows):
        if start and leased.work.interrupted():
            yield from (Row(x.key, x.kind, x.size or 0, Outcome.FAILED, _NOT_SENT) for x in lines[start:])
            return
        chunk = lines[start : start + deleter.many.rows]
        spared = guard.reasons_to_spare(chunk)
        yield from (Row(x.key, x.kind, x.size or 0, Outcome.SPARED, spared[x.key]) for x in chunk if x.key in spared)
        victims = [line for line in chunk if line.key not in spared]
        lease.renew()
        outcomes = deleter.many.delete_many(
            [Doomed(line.key, line.etag) for line in victims], deleter.delete, lease.check, lease.lend
        )
        for line, said in zip(victims, outcomes, strict=True):
            yield Row(line.key, line.kind, line.size or 0, _OUTCOMES[said.fate], said.error)


def _lines(table: Any) -> list[ListedFile]:
    noted = set(table.column_names)
    columns = (
        table.column(name).to_pylist() if name in noted else repeat(None, len(table)) for name in ListedFile._fields
    )
    return list(map(ListedFile._make, zip(*columns, strict=True)))


def _finish(leased: LeasedRun, deleter: Deleter) -> LeasedRun:
    work, run = leased.work, leased.run
    totals = outcome_totals(work.store, run.folder)
    failed = totals.get(Outcome.FAILED)
    if failed is not None:
        raise DeletesFailed(
            f"{failed.files:,} files of {run.id} could not be deleted",
            hint=f"`firnline purge {quote(str(run.id))}` tries them again",
        )
    remove_emptied(leased, deleter.folders)
    leased.lease.renew()
    note_end(work, run, End.PURGED)
    said = {outcome: {"files": tally.files, "bytes": tally.bytes} for outcome, tally in totals.items()}
    return leased.moved(RunState.DONE, outcomes=said)
