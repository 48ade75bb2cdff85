"""Where built programs and fetched jars stay between sessions."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firnline.own_files import own_cache


def cache_folder(name: str) -> Path:
    """Returns a folder of the user's cache, made where it is not there."""
    folder = own_cache(name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Holds a lock file. Test workers may fetch or build at the same moment: one does, the others wait and find it."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
