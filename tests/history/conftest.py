from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.world import World

MakeWorld = Callable[..., World]


@pytest.fixture
def world(quick_folder: Path) -> World:
    """A world whose table remembers for 25 days: of s1, s3, s4, s5 and s7, which expire, s1 is older than that."""
    world = World.make(quick_folder / "world")
    world.policy = "history: 25d"
    return world
