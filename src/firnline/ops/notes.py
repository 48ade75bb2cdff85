"""Clearing away the notes of commits that took several requests, once nobody can ask for them any more.

Two can ask how far a commit came. A run's record names its tries, and whoever carries the run on reads their notes: so
what an unfinished run names stays. And a process that is in the middle of a commit reads its own; a tag or a hold that
somebody makes is in nobody's record, so there only that process does. It ends minutes after it began, and a day is a
wide margin. One that was frozen for longer finds no note, and then the folder tells: where anything of its commit was
done, the folder is not the one that the commit was made from any more, so it loses and is made anew.
"""

from __future__ import annotations

from contextlib import suppress

from firnline.errors import FirnlineError
from firnline.journal.layout import notes_folder
from firnline.model.times import DAY_MS
from firnline.ops.workplace import Workplace
from firnline.ports.discard import Own, own_keys
from firnline.ports.formats import FenceKind, State


def clear_notes(work: Workplace, state: State) -> None:
    """Discards notes that are a day old by the store's clock and that no unfinished run names.

    Where anything cannot be read, all of them stay.
    """
    if work.discard is None or state.capabilities.fence is not FenceKind.NONE:
        return
    with suppress(FirnlineError):
        folder = notes_folder(state.location)
        before = work.now() - DAY_MS
        found = [each for each in work.store.list(folder) if each.modified_ms is not None and each.modified_ms < before]
        notes = own_keys(folder, found, Own.NOTE)
        open_tries = _open_tries(work, state) if notes else set()
        work.discard.discard([each for each in notes if each.name.partition(".")[0] not in open_tries])


def _open_tries(work: Workplace, state: State) -> set[str]:
    unfinished = (run for run in work.recorded(state) if not run.is_finished)
    return {str(event.detail["id"]) for run in unfinished for event in run.events if "id" in event.detail}
