"""When each table is looked at: those that make garbage often, quiet ones seldom, those that fail later and later."""

from __future__ import annotations

import random
from collections.abc import Iterable, Set
from dataclasses import replace

from firnline.model.times import DAY_MS, HOUR_MS, MINUTE_MS
from firnline.policy.worker.keys import WorkerPolicy
from firnline.worker.memory import Memory, Remembered

_SELDOM = 16
"""A table on which nothing expires is looked at up to so many times less often."""
_SELDOM_MS = DAY_MS
"""But never less often than that, unless the operator's own rhythm is slower."""
_FIRST_BACKOFF_MS = MINUTE_MS
_LONGEST_BACKOFF_MS = 6 * HOUR_MS
_PASSED_OVER_MS = DAY_MS
_OLD_WEIGHT = 0.5
_SEARCH_AGAIN = 8


def is_due(known: Remembered, policy: WorkerPolicy, now_ms: int) -> bool:
    """Tells whether a table is to be looked at. What was noted by a clock that ran ahead, and was put back since, does
    not count.
    """
    return due_ms(known, policy, now_ms) <= now_ms


def is_search_due(known: Remembered, policy: WorkerPolicy, now_ms: int) -> bool:
    """Tells whether the folders of a table are to be searched."""
    if policy.orphans_ms is None or _backs_off_until_ms(known, now_ms) > now_ms:
        return False
    return known.searched_ms > now_ms or now_ms >= known.searched_ms + policy.orphans_ms


def by_need(tables: Iterable[str], memory: Memory, now_ms: int) -> list[str]:
    """Returns the tables, those first that make most garbage: where a window closes before all are done, the most was
    done. Before them come those that were passed over for a day, the longest first: where no window is long enough for
    all, each has its turn. One that a window cut off had its turn too, else it would be the first in each.
    """

    def need(name: str) -> tuple[float, ...]:
        known = memory.of(name)
        waits_since = min(now_ms, max(known.looked_ms + known.waits_ms, known.begun_ms))
        passed_over = now_ms - waits_since >= _PASSED_OVER_MS
        return (0, waits_since) if passed_over else (1, -known.bytes_per_hour, waits_since)

    return sorted(tables, key=lambda name: (need(name), name))


def looked(known: Remembered, policy: WorkerPolicy, now_ms: int, released: int, snapshots: int) -> Remembered:
    """Returns what is known after a look that ended well: so many bytes would be freed, so many snapshots expired."""
    hours = (now_ms - known.looked_ms) / HOUR_MS if 0 < known.looked_ms < now_ms else 24.0
    rate = released / max(hours, 1 / 60)
    smoothed = rate if not known.looked_ms else known.bytes_per_hour * _OLD_WEIGHT + rate * (1 - _OLD_WEIGHT)
    every = policy.every_ms
    waits = max(every, known.waits_ms // 2) if snapshots else min(max(every, known.waits_ms * 2), _longest(policy))
    return replace(known, looked_ms=now_ms, waits_ms=waits, bytes_per_hour=smoothed, failures=0, again_ms=0)


def begun(known: Remembered, now_ms: int) -> Remembered:
    return replace(known, begun_ms=now_ms)


def searched(known: Remembered, now_ms: int) -> Remembered:
    return replace(known, searched_ms=now_ms)


def search_failed(known: Remembered, policy: WorkerPolicy, now_ms: int) -> Remembered:
    """Returns what is known after a search that failed. It asks every table of the lake, so one that is damaged stops
    the searches of all: none of them is expired the later for that.
    """
    whole = policy.orphans_ms or 0
    return replace(known, searched_ms=now_ms - whole + whole // _SEARCH_AGAIN)


def failed(known: Remembered, now_ms: int) -> Remembered:
    """Returns what is known after a look that failed: the next one comes later each time. Tables that failed together,
    as their server was down, do not come back together.
    """
    full = min(_FIRST_BACKOFF_MS << min(known.failures, 16), _LONGEST_BACKOFF_MS)
    return replace(known, failures=known.failures + 1, again_ms=now_ms + int(full * random.uniform(0.5, 1.0)))


def taken(known: Remembered, policy: WorkerPolicy, now_ms: int) -> Remembered:
    """Returns what is known where another worker has the table: it is left to that one for now."""
    return replace(known, again_ms=now_ms + min(policy.every_ms, _LONGEST_BACKOFF_MS))


def next_due_ms(memory: Memory, policy: WorkerPolicy, now_ms: int, among: Set[str]) -> int:
    """Returns when to go round again: as soon as one of these tables is due, and no later than `every` from now, for
    others may begin runs, and make tables.
    """
    due = (due_ms(known, policy, now_ms) for name, known in memory.tables.items() if name in among)
    return min([now_ms + policy.every_ms, *due])


def due_ms(known: Remembered, policy: WorkerPolicy, now_ms: int) -> int:
    """Returns when a table is due by the rhythm of now, whatever it was when it was last looked at."""
    waits = min(known.waits_ms, _longest(policy))
    due = now_ms if known.looked_ms > now_ms else known.looked_ms + waits
    return max(due, _backs_off_until_ms(known, now_ms))


def _backs_off_until_ms(known: Remembered, now_ms: int) -> int:
    """Returns until when a table is left alone; 0 where that was noted by a clock that ran ahead."""
    return known.again_ms if known.again_ms <= now_ms + _LONGEST_BACKOFF_MS else 0


def _longest(policy: WorkerPolicy) -> int:
    return max(policy.every_ms, min(policy.every_ms * _SELDOM, _SELDOM_MS))
