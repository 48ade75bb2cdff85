"""Asking several servers side by side: three that are away cost the time of one.

1. A server hangs, and Ctrl-C comes while its answer is waited for.
2. A pool would wait for its threads, and so would Python at its end: half a minute after the operator said stop.

So the threads are daemons: what they wait for ends with the process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import RLock, Thread
from typing import Any, Generic, TypeVar

from firnline.errors import FirnlineError

AT_MOST = 8
"""Threads at a time: many catalogs may stand behind one server."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def answers(items: Sequence[Item], ask: Callable[[Item], Answer]) -> list[Answer | FirnlineError]:
    """Returns what is answered to each, in the order given; what is wrong where it cannot be. Raises any other error,
    which is a mistake of our own.
    """
    coming: list[Future[Answer]] = [Future() for _ in items]
    waiting: SimpleQueue[tuple[Item, Future[Answer]]] = SimpleQueue()
    for each in zip(items, coming, strict=True):
        waiting.put(each)
    if len(items) <= 1 or not _started(min(AT_MOST, len(items)), waiting, ask):
        _work_off(waiting, ask)
    settled: list[Answer | FirnlineError] = []
    for answer in coming:
        try:
            settled.append(answer.result())
        except FirnlineError as problem:
            settled.append(problem)
    return settled


def all_answers(items: Sequence[Item], ask: Callable[[Item], Answer]) -> list[Answer]:
    """Returns what is answered to each, in the order given. Raises what is wrong with the first that cannot be."""
    found: list[Answer] = []
    for each in answers(items, ask):
        if isinstance(each, FirnlineError):
            raise each
        found.append(each)
    return found


class AskedOnce(Generic[Answer]):
    """A property that each object asks its own server for, once. A `cached_property` has one lock for all objects of a
    class in Python 3.11: each would wait for the server of another.
    """

    def __init__(self, ask: Callable[[Any], Answer]) -> None:
        self._ask, self._name, self.__doc__ = ask, ask.__name__, ask.__doc__

    def __get__(self, of: object, kind: type | None = None) -> Answer:
        known = vars(of)
        with known.setdefault(f"asking for {self._name}", RLock()):
            if self._name not in known:
                known[self._name] = self._ask(of)
            found: Answer = known[self._name]
        return found


def _started(many: int, waiting: SimpleQueue[tuple[Any, Future[Any]]], ask: Callable[[Any], Any]) -> int:
    """Returns how many threads began to ask: fewer where the system has no more of them, as in a small container."""
    for count in range(many):
        try:
            Thread(target=_work_off, args=(waiting, ask), daemon=True).start()
        except RuntimeError:
            return count
    return many


def _work_off(waiting: SimpleQueue[tuple[Any, Future[Any]]], ask: Callable[[Any], Any]) -> None:
    while True:
        try:
            item, answer = waiting.get_nowait()
        except Empty:
            return
        try:
            answer.set_result(ask(item))
        except BaseException as problem:  # also what ends a thread: else its answer would be waited for, for ever
            answer.set_exception(problem)
