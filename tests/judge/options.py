"""What an operator asks for: nothing (the table's own settings), a cut-off, a count."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .worlds import World


@dataclass(frozen=True)
class Options:
    """None leaves the table's property or its default in force."""

    older_than: int | None = None
    retain_last: int | None = None


def questions(world: World) -> list[Options]:
    """The table's own settings, and one random request that often lies exactly on a snapshot's time."""
    rng = random.Random(f"options of {world.seed}")
    on_a_time = rng.choice(world.times) + rng.choice([0, 0, 1, -1])
    older_than = rng.choice([None, on_a_time, on_a_time, rng.randint(world.times[0], world.now), world.now])
    asked = Options(older_than, rng.choice([None, None, 1, 2, 5]))
    return [Options()] if asked == Options() else [Options(), asked]
