"""Lakes for a worker: tables of PyIceberg in a SQLite catalog, in local files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from firnline.app.places import now_ms
from firnline.worker.report import RoundReport
from firnline.worker.working import Worker
from tests.neighbours.lakes import RealLake, real_lake

POLICY = """
keep: {last: 2}
grace: 0s
blast-radius: 100%
worker: {every: 1s, orphans: 1s}
"""


@contextmanager
def worked_lake(folder: Path, monkeypatch: pytest.MonkeyPatch, tables: int = 3) -> Iterator[RealLake]:
    """Makes a lake whose tables have five snapshots each, of which a policy keeps two."""
    with real_lake(folder, monkeypatch) as lake:
        lake.policy = POLICY
        for number in range(tables):
            lake.create(f"t{number}")
            for value in range(5):
                lake.append(f"t{number}", value)
        lake.firnline()
        yield lake


def worker(lake: RealLake, rounds: list[RoundReport], stop: Event | None = None) -> Worker:
    (lake.folder / "firnline.yaml").write_text(lake.policy)
    made = Worker(str(lake.folder / "firnline.yaml"), lake.folder / "memory.json", rounds.append, "local")
    made.stop = stop or made.stop
    return made


def snapshots(lake: RealLake, name: str) -> int:
    return len(lake.table(name).snapshots())


def one_round(lake: RealLake, later_ms: int = 0) -> RoundReport:
    """Returns what a worker did that was started for one round, on a machine whose clock is so far ahead."""
    rounds: list[RoundReport] = []
    working = worker(lake, rounds)
    working.clock = lambda: now_ms() + later_ms
    working.run(once=True)
    return rounds[0]
