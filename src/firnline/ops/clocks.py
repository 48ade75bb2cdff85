"""The store's clock: the one that every decision is made by, and that every time written into a table comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from firnline.errors import RefusedForSafety
from firnline.journal.lease import LARGEST_SKEW_MS
from firnline.model.times import format_duration
from firnline.ports.stores import Head


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
    written_ms = store.head(key).modified_ms
    # Read after the answer came, so what the requests took counts as ours: the time told is too early, never too late.
    ahead_ms = 0 if written_ms is None else machine() - written_ms
    if abs(ahead_ms) > LARGEST_SKEW_MS:
        raise RefusedForSafety(
            f"this machine's clock and the store's differ by {format_duration(abs(ahead_ms))}",
            hint=f"set the clock; more than {format_duration(LARGEST_SKEW_MS)} makes every age wrong",
        )
    return StoreClock(machine, ahead_ms)
