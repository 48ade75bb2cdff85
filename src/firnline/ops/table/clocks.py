"""What time it is by a store, which dates its files; this machine's clock is only what tells it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError, RefusedForSafety
from firnline.journal.layout import FOLDER, clock_folder
from firnline.journal.lease import LARGEST_SKEW_MS
from firnline.model.locations import join, parse_location, within
from firnline.model.times import format_duration
from firnline.ports.stores import Head, ReadWrite

if TYPE_CHECKING:
    from firnline.ports.discard import Discard


@dataclass(frozen=True, slots=True)
class StoreClock:
    """The store's time, told by this machine: never later than it really is.

    Metadata that comes from the future locks other engines out: Iceberg's Java refuses every commit whose own time lies
    more than a minute before that of the metadata it is built on.
    """

    machine: Callable[[], int]
    ahead_ms: int

    def __call__(self) -> int:
        return self.machine() - self.ahead_ms


def clock_by(store: Head, key: str, machine: Callable[[], int]) -> StoreClock:
    """Returns the store's clock, by the time that the store gave an object which was written just now.

    Raises RefusedForSafety unless the two clocks are near each other: claims on a table are written and judged by the
    machines' own. A store that tells no times leaves nothing to compare.
    """
    clock = _clock_told(store, key, machine)
    if abs(clock.ahead_ms) > LARGEST_SKEW_MS:
        raise RefusedForSafety(
            f"this machine's clock and the store's differ by {format_duration(abs(clock.ahead_ms))}",
            hint=f"set the clock; more than {format_duration(LARGEST_SKEW_MS)} makes every age wrong",
        )
    return clock


def _clock_told(store: Head, key: str, machine: Callable[[], int]) -> StoreClock:
    written_ms = store.head(key).modified_ms
    # Read after the answer came, so what the requests took counts as ours: the time told is too early, never too late.
    return StoreClock(machine, 0 if written_ms is None else machine() - written_ms)


def clock_at(store: ReadWrite, root: str, machine: Callable[[], int], discard: Discard | None) -> StoreClock:
    """Returns the store's clock, by an empty object that is written among the records at `root` and discarded again.

    Raises RefusedForSafety as `clock_by` does.
    """
    with _moment(store, root, discard) as told:
        return clock_by(store, told, machine)


@contextmanager
def _moment(store: ReadWrite, root: str, discard: Discard | None) -> Iterator[str]:
    """Yields the name of an empty object that was written just now, for the store to date."""
    from firnline.ports.discard import OwnKey

    told = OwnKey(clock_folder(root), f"moment-{secrets.token_hex(16)}")
    store.put(str(told), b"")
    try:
        yield str(told)
    finally:
        if discard is not None:
            with suppress(FirnlineError):  # it is empty, and nobody looks for it
                discard.discard([told])


def earliest_clock(
    store: ReadWrite, folders: Iterable[str], root: str, records: Callable[[], int], discard: Discard | None
) -> Callable[[], int]:
    """Returns `records`, the clock of the records at `root`, or that of one of the folders if it is behind. Raises
    RefusedForSafety where one is far from that of the records.
    """
    behind_ms = 0
    for folder in (each for each in folders if not _have_one_clock(each, root)):
        with _moment(store, join(folder, FOLDER), discard) as told:
            ahead_ms = _clock_told(store, told, records).ahead_ms
        if abs(ahead_ms) > LARGEST_SKEW_MS:
            raise RefusedForSafety(
                f"the clocks of {folder} and of the records in {root} differ by {format_duration(abs(ahead_ms))}",
                hint="set the one that is wrong: files are as old as the store says that they lie in",
            )
        behind_ms = max(behind_ms, ahead_ms)
    return StoreClock(records, behind_ms) if behind_ms else records


def _have_one_clock(folder: str, root: str) -> bool:
    """Tells whether one clock dates the files of two folders: settings lead to one store of each kind, but two local
    folders may be on disks of different servers.
    """
    schemes = {parse_location(each).scheme for each in (folder, root)}
    return within(folder, root) or (len(schemes) == 1 and "file" not in schemes)
