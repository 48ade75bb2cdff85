"""Opening portions of units side by side: while one waits for the store, another is decoded."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from firnline.model.files import File
from firnline.model.portions import portions
from firnline.ports.expanding import Expand, Expanded, R, Remembering, T, Together

_PORTIONS = 2
"""Opened at a time: with more of them the interpreter's lock is what they wait for."""
_RECALLED = (1_024, 16 << 20)
"""Units and bytes of them that are recalled at a time: that takes a fraction of opening them, in time and in memory."""
_WAITED_S = 0.002
"""A call that took longer waited for another machine or for a disk."""


Numbered = tuple[list[File], Sequence[int]]
Opened = tuple[Sequence[int], Expanded]
"""The numbers of some units, and what those name: also by their numbers among all units."""


class Opener:
    """Opens units with an Expand, some portions at a time."""

    def __init__(self, expand: Expand, portions_pool: ThreadPoolExecutor, requests: Together) -> None:
        self._expand = expand
        self._pool = portions_pool
        self._requests = requests

    def __call__(self, units: Iterable[File]) -> Iterator[Opened]:
        """Yields what the units name: first of those that need not be opened, then of the others, in their order.

        As many answers as are opened at a time are held, and no more.
        """
        every = list(units)
        due: Sequence[int] = range(len(every))
        if isinstance(self._expand, Remembering):
            known: set[int] = set()
            for numbers, found in self._recalled(every, self._expand):
                known.update(numbers)
                yield numbers, found
            due = [number for number in due if number not in known]
        yield from self._opened(every, due)

    def _recalled(self, units: Sequence[File], memory: Remembering) -> Iterator[Opened]:
        """In this thread: it is many short calls, for which threads would only wait for the interpreter's lock."""
        for portion, numbers in _numbered(units, range(len(units)), *_RECALLED):
            answer = memory.recalled(portion, self._requests)
            if answer is not None:
                known, found = answer
                yield [numbers[place] for place in known], found.numbered(numbers)

    def _opened(self, units: Sequence[File], due: Sequence[int]) -> Iterator[Opened]:
        ahead: deque[tuple[Sequence[int], Future[Expanded]]] = deque()
        try:
            for portion, numbers in _numbered(units, due):
                ahead.append((numbers, self._pool.submit(self._expand, portion, self._requests)))
                if len(ahead) > _PORTIONS:
                    yield _done(ahead)
            while ahead:
                yield _done(ahead)
        finally:
            for _, waiting in ahead:
                waiting.cancel()


def _numbered(units: Sequence[File], due: Sequence[int], *most: int) -> Iterator[Numbered]:
    """Yields those units that are due in portions, each with their numbers."""
    start = 0
    for portion in portions((units[number] for number in due), *most):
        yield portion, due[start : start + len(portion)]
        start += len(portion)


def _done(ahead: deque[tuple[Sequence[int], Future[Expanded]]]) -> Opened:
    numbers, answer = ahead.popleft()
    return numbers, answer.result().numbered(numbers)


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Does some work for each of many: one after the other while nobody waits, side by side from the first that does.

    A file of this machine is read in less time than it takes to hand it to another thread.
    """

    pool: ThreadPoolExecutor

    def __call__(self, work: Callable[[T], R], each: Iterable[T], /) -> Iterator[R]:
        due = iter(each)
        for one in due:
            started = time.perf_counter()
            yield work(one)
            if time.perf_counter() - started > _WAITED_S:
                break
        yield from self.pool.map(work, due)


@contextmanager
def opener(expand: Expand, threads: int) -> Iterator[Opener]:
    """Hands out an Opener that makes so many requests at a time."""
    with ThreadPoolExecutor(_PORTIONS) as portions_pool, ThreadPoolExecutor(threads) as requests:
        yield Opener(expand, portions_pool, SideBySide(requests))
