from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firnline.testing.world import World

_MEMORY = Path("/dev/shm")
MakeWorld = Callable[..., World]


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: every record is synced to its disk, which is what takes time."""
    if not os.access(_MEMORY, os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="firnline-history-", dir=_MEMORY))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def world(quick_folder: Path) -> World:
    """A world whose table remembers for 25 days: of s1, s3, s4, s5 and s7, which expire, s1 is older than that."""
    world = World.make(quick_folder / "world")
    world.policy = "history: 25d"
    return world
