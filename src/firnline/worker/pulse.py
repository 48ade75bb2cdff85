"""Whether a worker still moves: it reads, sleeps, ends rounds, or waits for a stage on Spark."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from firnline.ports.progress import Progress, Silent

SILENT_S = 600
LONGEST_STAGE_S = 6 * 3_600
"""A stage on Spark reads on executors, and nothing is heard of it here until it ends: so long it counts as work."""


@dataclass
class Pulse:
    """Notes signs of life. Each thread is in the stage that it last began, until it reads again or the stage ends.

    1. A thread begins a stage on Spark, and waits for its end without a sign.
    2. Other threads read meanwhile: their signs say nothing about that stage, and do not end it.
    """

    progress: Progress = field(default_factory=Silent)
    _beat_s: float = field(default=0.0, init=False)
    _stages: dict[int, tuple[str, float]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.beat()

    def beat(self) -> None:
        self._beat_s = time.monotonic()
        self._stages.pop(threading.get_ident(), None)

    def step(self, what: str, done: int, total: int | None = None) -> None:
        """Notes a stage, as a Progress does, and passes it on."""
        self.beat()
        if total is None or done < total:
            self._stages[threading.get_ident()] = (what, self._beat_s)
        self.progress.step(what, done, total)

    def end_stages(self) -> None:
        """Forgets every stage: a round is over, and with it its threads."""
        self._stages.clear()

    def facts(self) -> dict[str, Any]:
        """Returns for how long nothing was heard, and the stage that was begun last, if any."""
        now, stage = time.monotonic(), self._stage()
        facts: dict[str, Any] = {"silent_seconds": round(now - self._beat_s)}
        return facts if stage is None else {**facts, "stage": stage[0], "stage_seconds": round(now - stage[1])}

    def is_well(self) -> bool:
        stage = self._stage()
        bound, since = (SILENT_S, self._beat_s) if stage is None else (LONGEST_STAGE_S, max(stage[1], self._beat_s))
        return time.monotonic() - since < bound

    def _stage(self) -> tuple[str, float] | None:
        """Returns the youngest stage of a thread that is still there."""
        alive = {each.ident for each in threading.enumerate()}
        stages = [stage for thread, stage in list(self._stages.items()) if thread in alive]
        return max(stages, key=lambda stage: stage[1], default=None)
