from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.world import World

MakeWorld = Callable[..., World]


@pytest.fixture
def make_world(quick_folder: Path) -> MakeWorld:
    """Makes new worlds; arguments as of World.make."""
    made = Counter[str]()

    def make(**options: Any) -> World:
        made["worlds"] += 1
        return World.make(quick_folder / str(made["worlds"]), **options)

    return make


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world()


@pytest.fixture
def count_cases(record_property: Callable[[str, object], None]) -> Callable[[str, int], None]:
    """Adds to the number of cases that the end of the session prints under a heading."""
    return lambda heading, number: record_property("count: generated safety cases", {heading: number})
