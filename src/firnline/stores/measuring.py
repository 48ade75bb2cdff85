"""How many reads a second a store really answers: asked for a moment, by several threads, for one small object."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from firnline.ports.stores import ReadWrite

_THREADS = 8
_SECONDS = 1.0
_MOST = 4_000


def reads_per_second(store: ReadWrite, folder: str, clock: Callable[[], float] = time.monotonic) -> float | None:
    """Returns the rate at which a store told of an object in the folder; None where there is none to ask for. Some
    thousand requests at most: who measures must not be the load that the budget is to keep away.
    """
    found = next(iter(store.list(folder)), None)
    if found is None:
        return None
    began = clock()

    def ask(_: int) -> int:
        asked = 0
        while clock() - began < _SECONDS and asked < _MOST // _THREADS:
            store.head(found.key)
            asked += 1
        return asked

    with ThreadPoolExecutor(_THREADS) as pool:
        asked = sum(pool.map(ask, range(_THREADS)))
    return asked / max(clock() - began, 1e-3)
