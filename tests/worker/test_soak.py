"""Two workers on a lake of three formats that is written to, killed at random, on a store that throttles and fails:
in the end every table is in policy, every snapshot that is left reads, every run has ended, and no lease is stuck.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from firnline.journal.outcomes import Outcome, outcome_keys
from firnline.journal.parts import read_part
from firnline.lake import Lake, open_lake
from firnline.ops.runs.plan import SHORTEST_GRACE_MS
from firnline.ops.runs.status import RunStatus
from firnline.worker.report import RoundReport, RoundStep
from firnline.worker.working import Worker
from harness.lanes import by_lane
from harness.paimon.environment import Pypaimon, pypaimon
from harness.servers.fixtures import NOT_HERE
from harness.servers.process import Missing, Server
from tests.stores.careless import careless
from tests.worker.soaking import Weather, soaked_lake, written_to

pytestmark = pytest.mark.timeout(by_lane(300, 420, 2_400))

SECONDS = by_lane(10, 12, 1_200)
TABLES = by_lane(5, 5, 50)
FIRNLINE = str(Path(sys.executable).with_name("firnline"))
POLICY = """
keep: {{last: 3}}
grace: 2s
blast-radius: 100%
worker:
  every: 1s
  orphans: 20s
  budget: 100%
  tables: [{tables}]
"""


@pytest.fixture(scope="module")
def process() -> Iterator[Pypaimon]:
    try:
        with pypaimon() as running:
            yield running
    except Missing as missing:
        pytest.skip(f"{NOT_HERE}{missing}")


@dataclass
class Crew:
    """Two workers, each started again whenever it was killed. Notes how much memory one took that was left alone."""

    folder: Path
    choice: random.Random
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    killed: int = 0

    def start(self, number: int) -> subprocess.Popen[bytes]:
        memory, log = self.folder / f"memory-{number}.json", (self.folder / f"worker-{number}.log").open("ab")
        command = [FIRNLINE, "worker", "--config", str(self.folder / "firnline.yaml"), "--memory", str(memory)]
        with log:
            return subprocess.Popen([*command, "--engine", "local", "--json"], stdout=log, stderr=log)

    def work(self, seconds: float) -> None:
        """Kills a worker at random instants; the second one is left alone in the last half."""
        self.running = [self.start(number) for number in (0, 1)]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self.choice.uniform(2, 8))
            number = 0 if end - time.monotonic() < seconds / 2 else self.choice.randrange(2)
            self.running[number].send_signal(self.choice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
            self.running[number].wait(60)
            self.running[number] = self.start(number)
            self.killed += 1
            self.taken.append(psutil.Process(self.running[1].pid).memory_info().rss)

    def end(self) -> None:
        for each in self.running:
            each.send_signal(signal.SIGTERM)
        for each in self.running:
            each.wait(60)


def is_in_long_grace(step: RoundStep) -> bool:
    """Tells whether a run only waits for its readers, or to be called off: of Icechunk that takes two minutes."""
    is_chunks = Path(step.table).name.startswith("c")
    if step.status is None:
        return False
    is_loose = step.status.state == "planned" and not step.status.run.is_meant  # a kill left it before its approval
    return is_loose or (is_chunks and step.status.state in ("planned", "committed"))


def outcomes_of(status: RunStatus, lake: Lake) -> list[str]:
    """Returns the files of a run by their last outcomes, each as often as one is told of it: what a stop left unsent
    failed at first, and has another one of the next purge.
    """
    store = lake.places.table_context(status.run.plan["table"]).store
    found: list[str] = []
    for attempts in outcome_keys(store, status.run.folder).values():
        for key in attempts:
            rows = read_part(store, key).to_pylist()
            found += [row["path"] for row in rows if key == attempts[-1] or row["outcome"] != Outcome.FAILED]
    return found


def settled(folder: Path) -> Lake:
    """Returns the lake when a worker has nothing left to do; raises AssertionError if it never ends.

    It waits by the clock, not by rounds: files of Paimon stay a minute after their commit, whatever grace is, and how
    many rounds fit into that minute depends on the machine. A round takes a core from others: a few are enough.
    """
    rounds: list[RoundReport] = []
    worker = Worker(str(folder / "firnline.yaml"), folder / "last.json", rounds.append, "local")
    end = time.monotonic() + 2 * SHORTEST_GRACE_MS / 1000
    while time.monotonic() < end:
        worker.run(once=True)
        lake = open_lake(str(folder / "firnline.yaml"), engine="local")
        last = rounds[-1]
        if not last.problems and all(map(is_in_long_grace, last.steps)):
            return lake
        time.sleep(5)
    raise AssertionError(rounds[-1].to_json())


@pytest.mark.full
def test_a_lake_is_kept_in_policy_whatever_happens(
    tmp_path: Path, moto_server: Server, process: Pypaimon, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    choice = random.Random(seed)
    for name, value in {"PYICEBERG_HOME": tmp_path, "HOME": tmp_path, "FIRNLINE_LEASE": "4s"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.chdir(tmp_path)
    with careless(moto_server.url) as bad:
        tables = soaked_lake(tmp_path, moto_server, bad, process, TABLES)
        (tmp_path / "firnline.yaml").write_text(POLICY.format(tables=", ".join(map(repr, tables))))
        bad.change, crew = Weather(random.Random(choice.random())).change, Crew(tmp_path, choice)
        with written_to(tables, choice) as tried:
            crew.work(SECONDS)
            crew.end()
        bad.change = lambda method, path, body, answer: answer
        lake = settled(tmp_path)
        runs = [status for name in tables for status in lake.runs(name)]
        print(f"{tried()} commits, {crew.killed} kills, {len(runs)} runs")
        for name, each in tables.items():
            each.refuse_lost()
            waits = any(status.state == "planned" for status in lake.runs(name))
            assert waits or lake.plan(name).plan.expire == (), name
            assert lake.check(name).sound, name
        assert {each.state for each in runs if not each.run.is_finished and each.run.is_meant} <= {
            "planned",
            "committed",
        }
        for status in (each for each in runs if each.state == "done"):
            told = outcomes_of(status, lake)
            assert len(told) == len(set(told)) >= status.run.plan["victims"]["files"], status.to_json()
        assert sum(each.state == "done" for each in runs) >= TABLES // 2
        for log in tmp_path.glob("worker-*.log"):
            assert "Traceback" not in log.read_text(errors="replace"), log.read_text(errors="replace")[-4_000:]
        if os.environ.get("FIRNLINE_FULL"):
            calm = crew.taken[len(crew.taken) // 2 :]
            first, last = calm[: len(calm) // 3], calm[-(len(calm) // 3) :]
            assert max(last) <= max(first) * 1.2, crew.taken
