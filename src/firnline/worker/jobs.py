"""Ending what runs on executors where a worker ends: they see neither its clock nor a signal."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

_LOOKS_S = 0.5


@contextmanager
def jobs_end(is_ending: Callable[[], bool], stop_jobs: Callable[[], None]) -> Iterator[None]:
    """Stops jobs as long as something inside starts them after the end: one may have been on its way. What cannot be
    stopped is told, and ends by itself.
    """
    done = Event()
    watch = Thread(target=_watch, args=(is_ending, stop_jobs, done), name="firnline-hours", daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()


def _watch(is_ending: Callable[[], bool], stop_jobs: Callable[[], None], done: Event) -> None:
    while not done.wait(_LOOKS_S):
        if is_ending():
            try:
                stop_jobs()
            except Exception as problem:  # whatever Spark's remains say: the round must not hang on it
                logging.getLogger("firnline").warning("jobs on Spark could not be stopped: %s", problem)
