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
from firnline.ports.expanding import Expand, Expanded, R, T, Together

_PORTIONS = 2
"""Opened at a time: with more of them the interpreter's lock is what they wait for."""
_WAITED_S = 0.002
"""A call that took longer waited for another machine or for a disk."""


class Opener:
    """Opens units with an Expand, some portions at a time. Answers come in the order of the units."""

    def __init__(self, expand: Expand, portions_pool: ThreadPoolExecutor, requests: Together) -> None:
        self._expand = expand
        self._pool = portions_pool
        self._requests = requests

    def __call__(self, units: Iterable[File]) -> Iterator[tuple[Sequence[File], Expanded]]:
        """Yields portions and what they name. As many answers as are opened at a time are held, and no more."""
        ahead: deque[tuple[Sequence[File], Future[Expanded]]] = deque()
        try:
            for portion in portions(units):
                ahead.append((portion, self._pool.submit(self._expand, portion, self._requests)))
                if len(ahead) > _PORTIONS:
                    yield _done(ahead)
            while ahead:
                yield _done(ahead)
        finally:
            for _, waiting in ahead:
                waiting.cancel()


def _done(ahead: deque[tuple[Sequence[File], Future[Expanded]]]) -> tuple[Sequence[File], Expanded]:
    portion, answer = ahead.popleft()
    return portion, answer.result()


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
