"""Moving a run: the one way, on which its news are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from firnline.errors import AuditUnwritable, FirnlineError, Interrupted
from firnline.journal.events import RunState
from firnline.journal.news import news_of_failure, news_of_move
from firnline.journal.runs import Run, load_run
from firnline.ops.table.context import TableContext


def moved(work: TableContext, run: Run, state: RunState, **detail: Any) -> Run:
    """Returns the run in its new state. Raises RefusedForSafety where a witness must write it down first and cannot,
    and LeaseHeld where another process moved it.

    The witness comes before the record: a process that is killed between the two leaves a move in the audit log that
    the record lacks, and the process that resumes makes the move again. The other way round one
    would be missing for good.
    """
    at_ms = work.now()
    news = news_of_move(run, state, at_ms, detail)
    work.watch.attest(news)
    new = run.moved(work.store, state, at_ms, **detail)
    work.watch.tell(news)
    return new


def goes_on(work: TableContext, run: Run) -> None:
    """Has it written down that this process goes on with what another one began. Raises RefusedForSafety where that is
    not possible.
    """
    work.watch.attest(news_of_move(run, run.state, work.now(), {}))


@contextmanager
def failures_told(work: TableContext, run: Run) -> Iterator[None]:
    """Tells of the error for which a run stops, and lets it through."""
    try:
        yield
    except BaseException as problem:
        news = news_of_failure(_as_it_is(work, run), _kind(problem), work.now())
        if not isinstance(problem, AuditUnwritable):
            with suppress(FirnlineError):  # nothing is done any more that would have to wait for it
                work.watch.attest(news)
        work.watch.tell(news)
        raise


def _as_it_is(work: TableContext, run: Run) -> Run:
    """Returns the run in the state that it came to; in the one that is known where it cannot be read now."""
    with suppress(FirnlineError):
        return load_run(work.store, run.folder.root, run.id, run.sealing)
    return run


def _kind(problem: BaseException) -> str:
    if isinstance(problem, FirnlineError):
        return problem.kind
    return Interrupted.kind if isinstance(problem, KeyboardInterrupt) else "crash"
