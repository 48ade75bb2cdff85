"""How fast a store is asked: what it may be asked for at each place, a fixed budget, and below it a pace that follows
what the store says.

A bulk delete counts by its keys: a store that takes 3,500 deletes a second takes three and a half full requests.
"Slow down" halves the pace, every success adds a little, and the size of a request follows the same rule.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from math import inf
from threading import BoundedSemaphore, Lock
from typing import Any, NamedTuple, TypeVar

from firnline.model.locations import parse_location
from firnline.policy.limits import LARGEST_BATCH, Limit, StoreLimits
from firnline.ports.catalogs import always
from firnline.ports.stores import Budget

READS, DELETES, WRITES = "reads", "deletes", "writes"


class Rates(NamedTuple):
    """Requests for reading, keys deleted, and requests that write a copy, a second."""

    reads: float = inf
    deletes: float = inf
    writes: float = inf


DEFAULTS: Mapping[str, Rates] = {
    "s3": Rates(5_500.0, 3_500.0, 3_500.0),
    "gs": Rates(5_000.0, 1_000.0, 1_000.0),
    "abfs": Rates(5_000.0, 2_500.0, 2_500.0),
    "az": Rates(5_000.0, 2_500.0, 2_500.0),
}
"""What is asked under one bucket and first folder where nothing else was said; local files are asked as fast as they
answer. S3 says that of a prefix, Google of a new bucket, and of Azure it is a quarter of what an account takes.
"""


def usual_rates(reads: float | None) -> Mapping[str, Rates]:
    """Returns what is asked where nothing was said; `reads` a second of any store, if that is known."""
    if reads is None:
        return DEFAULTS
    return {"file": Rates(reads), **{scheme: rates._replace(reads=reads) for scheme, rates in DEFAULTS.items()}}


PAGE = 1_000
"""Names that a store sends in one answer: so many listed count as one read, on every store."""

_FIRST_BATCH = 250
_SMALLEST_BATCH = 10
_BATCH_STEP = 50
_SLOWEST = 1 / 16
_STEP = 1 / 100
_ONE_CUT_S = 1.0
_MOST_KNOWN = 4_096
_FREE = nullcontext()

Clock = Callable[[], float]
Page = TypeVar("Page")


def prefix_of(folder: str) -> str:
    """Returns what shares one budget where nothing was said: the bucket and the first folder. Coarser than any store's
    own parts, so never faster than it allows.
    """
    scheme, authority, path = parse_location(folder)
    return f"{scheme}://{authority}/{path.lstrip('/').partition('/')[0]}"


class Lane(NamedTuple):
    """Requests of one kind to one place, which wait for each other. `at_once`: how many may be under way there, or in
    the larger or smaller place for which that was said; `batch`: the most keys of one request.
    """

    name: str
    rate: float = inf
    at_once: Limit | None = None
    batch: int = LARGEST_BATCH

    @property
    def is_free(self) -> bool:
        return self.rate == inf and self.at_once is None


@dataclass(frozen=True, slots=True)
class Lanes:
    """Tells in which lane a request stands: that of the place for which a limit was written, else of its prefix."""

    limits: StoreLimits = field(default_factory=StoreLimits)
    defaults: Mapping[str, Rates] = field(default_factory=lambda: DEFAULTS)

    def reads(self, folder: str) -> Lane:
        return Lane(*self._lane(READS, folder))

    def writes(self, folder: str) -> Lane:
        return Lane(*self._lane(WRITES, folder))

    def deletes(self, folder: str) -> Lane:
        batch = self.limits.limit("delete-batch", folder)
        return Lane(*self._lane(DELETES, folder), LARGEST_BATCH if batch is None else int(batch.value))

    def _lane(self, verb: str, folder: str) -> tuple[str, float, Limit | None]:
        rate = self.limits.limit(f"{verb}-per-second", folder)
        if rate is None:
            usual = self.defaults.get(parse_location(folder).scheme, Rates())
            rate = Limit(getattr(usual, verb), prefix_of(folder))
        at_once = self.limits.limit(f"{verb}-at-once", folder)
        named = None if at_once is None else Limit(at_once.value, f"{verb} {at_once.place}")
        return f"{verb} {rate.place}", rate.value, named


@dataclass
class Queue:
    """A queue at one counter: every key takes its time, so no window of time ever sees more than it may."""

    free_at: float = -inf

    def wait(self, keys: int, rate: float, now: float) -> float:
        """Returns how long to wait, and takes the place in the queue."""
        start = max(now, self.free_at)
        self.free_at = start + keys / rate
        return start - now


@dataclass
class LocalBudget:
    """A budget that this process has for itself: so much of every rate. A copy counts alone: give each its share."""

    part: float = 1.0
    clock: Clock = time.monotonic
    _queues: dict[str, Queue] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=Lock, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"part": self.part, "clock": self.clock}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def reserve(self, lane: str, keys: int, rate: float) -> float:
        with self._lock:
            return self._queues.setdefault(lane, Queue()).wait(keys, rate * self.part, self.clock())

    def share(self, parts: int) -> LocalBudget:
        return LocalBudget(self.part / max(1, parts), self.clock)


@dataclass
class Pace:
    """The rate of one lane, between a sixteenth of the ceiling and all of it, and the size of a request: never more
    than a second brings, so that nobody waits long behind one.
    """

    ceiling: float
    rate: float = 0.0
    batch: int = _FIRST_BATCH
    queue: Queue = field(default_factory=Queue)
    cut_at: float = -inf

    def __post_init__(self) -> None:
        self.rate = self.ceiling
        self.batch = min(self.batch, self.largest)

    @property
    def largest(self) -> int:
        return int(max(1, min(LARGEST_BATCH, self.ceiling)))

    def slowed(self, now: float) -> None:
        """Halves, unless that was just done: requests in flight tell of that same moment."""
        if now - self.cut_at < _ONE_CUT_S:
            return
        self.cut_at = now
        self.rate = max(self.rate / 2, self.ceiling * _SLOWEST)
        self.batch = max(self.batch // 2, min(_SMALLEST_BATCH, self.largest))

    def went_well(self) -> None:
        self.rate = min(self.rate + self.ceiling * _STEP, self.ceiling)
        self.batch = min(self.batch + _BATCH_STEP, self.largest)


class Throttle:
    """Everything that paces what one process asks of a store. Safe to share between threads.

    `parts`: as one of how many it works; each has an even part of what may be under way, and at least one request.
    `gate` is passed before each read and raises where none may be sent any more; it does not travel to other processes.
    """

    def __init__(
        self,
        lanes: Lanes | None = None,
        budget: Budget | None = None,
        clock: Clock = time.monotonic,
        parts: int = 1,
        gate: Callable[[], None] = always,
    ) -> None:
        self.lanes = lanes or Lanes()
        self.budget: Budget = budget or LocalBudget(clock=clock)
        self._clock = clock
        self._parts = parts
        self._gate = gate
        self._known: dict[tuple[str, str], Lane] = {}
        self._paces: dict[str, Pace] = {}
        self._turns: dict[str, BoundedSemaphore] = {}
        self._shares: dict[int, Throttle] = {}
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"lanes": self.lanes, "budget": self.budget, "clock": self._clock, "parts": self._parts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def share(self, parts: int) -> Throttle:
        """Returns what paces one of `parts` that work at once: together they ask for what this one may. It is the same
        one every time: whatever of a task holds it, the readers of a thousand tables, stands in one line.
        """
        if parts not in self._shares:
            parts_of_all = self._parts * max(1, parts)
            made = Throttle(self.lanes, self.budget.share(parts), self._clock, parts_of_all, self._gate)
            self._shares.setdefault(parts, made)
        return self._shares[parts]

    def reads(self, folder: str) -> Lane:
        return self._lane(READS, folder)

    def deletes(self, folder: str) -> Lane:
        return self._lane(DELETES, folder)

    def writes(self, folder: str) -> Lane:
        return self._lane(WRITES, folder)

    def _lane(self, verb: str, folder: str) -> Lane:
        """Returns the lane of a folder, found once for many requests."""
        found = self._known.get((verb, folder))
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            of_verb = {READS: self.lanes.reads, DELETES: self.lanes.deletes, WRITES: self.lanes.writes}
            found = of_verb[verb](folder)
            self._known[verb, folder] = found
        return found

    def batch(self, lane: Lane) -> int:
        """Returns how many keys the next request should bring."""
        with self._lock:
            return min(self._pace(lane).batch, lane.batch)

    def reserve(self, lane: Lane, keys: int) -> float:
        """Returns how many seconds to wait before `keys` may be sent; their place is taken."""
        if lane.rate == inf:
            return 0.0
        budgeted = self.budget.reserve(lane.name, keys, lane.rate)
        with self._lock:
            pace = self._pace(lane)
            return max(budgeted, pace.queue.wait(keys, pace.rate, self._clock()))

    def slowed(self, lane: Lane) -> None:
        """Notes that the store asked for less."""
        with self._lock:
            self._pace(lane).slowed(self._clock())

    def went_well(self, lane: Lane) -> None:
        with self._lock:
            self._pace(lane).went_well()

    def turn(self, lane: Lane) -> AbstractContextManager[object]:
        """Returns what holds one of the requests that a lane may have under way, after waiting for one."""
        if lane.at_once is None:
            return _FREE
        with self._lock:
            places = max(1, int(lane.at_once.value) // self._parts)
            return self._turns.setdefault(lane.at_once.place, BoundedSemaphore(places))

    @contextmanager
    def asking(self, lane: Lane) -> Iterator[None]:
        """Around one request for reading: waits until it may be sent."""
        self._gate()
        if lane.is_free:
            yield
            return
        with self.turn(lane):
            time.sleep(self.reserve(lane, 1))
            self._gate()  # it may have been shut while this one waited
            yield

    def listing(self, lane: Lane, pages: Iterator[Page], size: Callable[[Page], int]) -> Iterator[Page]:
        """Yields what a listing yields: it waits before the first, and whenever it has brought as much as a store sends
        in one answer. No turn is held while the caller works: it may read meanwhile.
        """
        self._gate()
        if lane.is_free:
            yield from pages
            return
        brought = PAGE
        while True:
            asked, brought = divmod(brought, PAGE)
            if asked:
                time.sleep(self.reserve(lane, asked))
                self._gate()
            with self.turn(lane):
                page = next(pages, None)
            if page is None:
                return
            brought += size(page)
            yield page

    def _pace(self, lane: Lane) -> Pace:
        found = self._paces.get(lane.name)
        return found or self._paces.setdefault(lane.name, Pace(lane.rate * self.budget.part))
