"""What the time of one round went into: opening lists, opening manifests, judging files, the commit, the purge."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

PHASES = ("list", "walk", "aggregate", "commit", "purge")
"""Until all manifest lists are opened (with all that is loaded and read before), until all manifests are, until the
list of victims is written, until the table is without its snapshots, until their files are gone.
"""


class Watch:
    """A Progress that remembers when each step was last heard of."""

    def __init__(self) -> None:
        self._begun = time.time()
        self._last: dict[str, float] = {}

    def step(self, what: str, done: int, total: int | None = None) -> None:
        self._last[what] = time.time()

    def phases(self, events: Mapping[str, int]) -> dict[str, float]:
        """Seconds of each phase that there was; `events`: when the run got into its states, in milliseconds."""
        ends = [
            self._last.get("opening manifest-lists"),
            self._last.get("opening manifests"),
        ]
        ends += [events[state] / 1000 if state in events else None for state in ("planned", "committed", "done")]
        if not events:
            ends[PHASES.index("aggregate")] = time.time()
        return _between(self._begun, ends)


def _between(begun: float, ends: Sequence[float | None]) -> dict[str, float]:
    found = {}
    for phase, end in zip(PHASES, ends, strict=True):
        if end is not None:
            found[phase] = round(end - begun, 2)
            begun = end
    return found


def phases_on_spark(stages: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Seconds of the stages of a plan of ours: two open the lists, two the manifests, the others judge."""
    seconds = [each["seconds"] for each in stages]
    parts = {"list": seconds[:2], "walk": seconds[2:4], "aggregate": seconds[4:]}
    return {phase: round(sum(each), 2) for phase, each in parts.items() if each}
