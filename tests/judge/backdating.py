"""Times for a world: Java stamps every commit with the clock, so the finished metadata gets new times.

Snapshots lie at odd multiples of two hours before now (give or take 59 minutes) and every age that a world's
settings name is a multiple of four hours, so a run that starts seconds later decides the same.
"""

from __future__ import annotations

import random
from typing import Any

HOUR = 3_600_000
STEP = 4 * HOUR
JITTER = 59 * 60_000


def backdate(document: dict[str, Any], rng: random.Random, now: int) -> None:
    """Give snapshots, both logs and the document itself times in the past, in place."""
    times = _times(len(document["snapshots"]), rng, now)
    if rng.random() < 0.3:
        _disorder(times, rng)
    for snapshot, time in zip(document["snapshots"], times, strict=True):
        snapshot["timestamp-ms"] = time
    _date_logs(document, now)


def age(rng: random.Random) -> int:
    """An age for a setting, from four hours to ten days, never near the age of a snapshot."""
    return STEP * rng.randint(1, 60)


def _times(count: int, rng: random.Random, now: int) -> list[int]:
    steps, step = [], rng.randint(0, 6)
    longest = rng.choice([2, 6, 16])
    for _ in range(count):
        steps.append(step)
        step += rng.randint(0, longest)
    times = [now - 2 * HOUR - STEP * step - rng.choice([0, rng.randint(-JITTER, JITTER)]) for step in steps]
    return sorted(times)


def _disorder(times: list[int], rng: random.Random) -> None:
    for _ in range(rng.randint(1, 3)):
        one, other = rng.randrange(len(times)), rng.randrange(len(times))
        times[one], times[other] = times[other], times[one]


def _date_logs(document: dict[str, Any], now: int) -> None:
    """Java refuses a log that is not sorted, so entries follow the latest time seen so far."""
    times = {snapshot["snapshot-id"]: snapshot["timestamp-ms"] for snapshot in document["snapshots"]}
    latest = min(times.values(), default=now)
    for entry in document.get("snapshot-log", []):
        latest = max(latest, times.get(entry["snapshot-id"], latest))
        entry["timestamp-ms"] = latest
    document["last-updated-ms"] = max([latest, *times.values()])
    for entry in document.get("metadata-log", []):
        entry["timestamp-ms"] = document["last-updated-ms"]
