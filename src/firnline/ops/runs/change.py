"""Changing a table's metadata: reload, edit, compare-and-swap; lost races are run again, unknown outcomes settled,
tries that may still be on their way fenced off.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain

from firnline.errors import FirnlineError, OutcomeUnknown, StoreError, TableMoved
from firnline.journal.events import Event
from firnline.ops.runs.leased import LeasedRun
from firnline.ops.table.context import TableContext
from firnline.ops.table.sources import refuse_mirror
from firnline.patience import Patience
from firnline.ports.catalogs import Attempt, Step, SwapOutcome, Version, WritableTable, always
from firnline.ports.formats import Amendment, Edited, State


def fence_off(leased: LeasedRun, tries: Iterable[Event]) -> bool:
    """Tells whether the table had to be moved on so that none of these tries can land any more.

    A process that was frozen just before it sent its commit sends it when it wakes, whatever became of its lease. As
    long as the table meets what such a try expects, it would land: after its run was cancelled, or after an undo was
    refused and the files were purged. What the catalog says is put in between, and the try can only lose.
    """
    work, lease = leased.work, leased.lease
    proofs = [event.detail for event in tries]

    def edit(state: State) -> Edited | None:
        between = work.source.commits.fence(proofs, version_of(state))
        return None if between is None else work.source.format.amend(state, between, work.now())

    if not proofs:
        return False
    return change(work.source, edit, lambda base, edited, attempt: lease.renew(), still=lease.check) is not None


Edit = Callable[[State], Edited | None]
"""From a fresh state to its successor; None where nothing is left to change."""

BeforeSend = Callable[[State, Edited, Attempt], None]
"""Called with the base, the edit and the commit as it is going to be sent, before anything is sent."""


COMMIT_PATIENCE = Patience(attempts=200, base_delay_s=0.05, max_delay_s=2.0, budget_s=300.0)
"""How long lost races are run again: a busy table moves on every second, and a run must not starve."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The commit that landed, and the state that it was made from."""

    base: State
    edited: Edited


def change(
    source: WritableTable,
    edit: Edit,
    before_send: BeforeSend,
    patience: Patience = COMMIT_PATIENCE,
    still: Callable[[], None] = always,
) -> Changed | None:
    """Returns the commit that landed, or None where the edit found nothing to do. `still` goes with every attempt.

    Every try starts from a fresh read, so a ref that appeared meanwhile always wins. Raises TableMoved when the
    budget is used up, OutcomeUnknown when nobody can tell whether the last try landed.
    """
    for pause in chain(patience.pauses(), (None,)):
        base = source.load()
        refuse_mirror(base)
        edited = edit(base)
        if edited is None:
            return None
        attempt = replace(source.commits.prepare(source.name, _step(base, edited)), still=still)
        before_send(base, edited, attempt)
        if _landed(source, attempt):
            return Changed(base, edited)
        if pause is not None:
            time.sleep(pause)
    raise TableMoved(
        f"{source.name} moved on faster than {patience.attempts} tries in {patience.budget_s:.0f} s could follow",
        hint="`firnline resume` tries again; nothing was removed",
    )


def _landed(source: WritableTable, attempt: Attempt) -> bool:
    """Tells whether the commit is in the table. An unknown outcome is settled by sending the very same commit again.

    That is safe: it changes the table once only. If it loses, or is refused (Iceberg's own server refuses to remove
    what is gone already), the table itself says whether the first one had won.
    """
    failure: FirnlineError | None = None
    unanswered = False
    for pause in (0.0, 0.1, 0.5, 2.0):
        time.sleep(pause)
        try:
            if unanswered and failure is not None and _shows(source, attempt):
                return True
            outcome = source.commits.commit(attempt)
            if outcome is SwapOutcome.DONE:
                return True
            if outcome is SwapOutcome.LOST and (not unanswered or not _may_still_land(source, attempt)):
                return _shows(source, attempt)
            unanswered = True
        except FirnlineError as known:
            if not unanswered and not isinstance(known, StoreError):
                if _landed_before(source, attempt):
                    return True
                raise  # it will not go away, and nothing was sent that could still land
            failure = known
    if failure is not None and not unanswered:
        raise failure  # nothing was ever sent that could still land
    raise OutcomeUnknown(
        f"nobody answered whether the commit to {source.name} landed", hint="`firnline resume` reads it back"
    )


def _shows(source: WritableTable, attempt: Attempt) -> bool:
    return source.commits.landed(attempt.proof, version_of(source.load()), attempt.still)


def _landed_before(source: WritableTable, attempt: Attempt) -> bool:
    """Tells whether a commit that was refused is in the table all the same.

    1. A proxy sends it on, and the server applies it. The answer gets lost between the two.
    2. The proxy sends it once more, and passes on what the server says of that: there is no such snapshot to remove.
    """
    try:
        return _shows(source, attempt)
    except FirnlineError:
        return False


def _may_still_land(source: WritableTable, attempt: Attempt) -> bool:
    """Tells whether a request that nobody answered could be applied later, although a second one lost just now.

    A pointer that moved on never comes back. A server that was only busy may still hold the first request: a process
    that goes on from here must fence it off, or it lands beside the next try and drops a tag that was made in between.
    """
    now = version_of(source.load())
    landed = source.commits.landed(attempt.proof, now, attempt.still)
    return not landed and source.commits.fence([attempt.proof], now) is not None


def version_of(state: State) -> Version:
    return Version(state.fence, state.document)


def _step(base: State, edited: Edited) -> Step:
    return Step(version_of(base), edited.document, edited.data, edited.location)


Amend = Callable[[State], Amendment]
"""From a fresh state to what is to be written; raises where it cannot be."""


def amend(work: TableContext, wanted: Amend) -> Changed | None:
    """Returns the commit, or None where the table already says all that. The wish is formed anew for every try."""

    def edit(state: State) -> Edited | None:
        amendment = wanted(state)
        if amendment.is_empty:
            return None
        return work.source.format.amend(state, amendment, work.by_the_store(state).now())

    return change(work.source, edit, lambda base, edited, attempt: None)
