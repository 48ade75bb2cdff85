"""A window is kept: nothing is asked outside of it, and what was cut off is finished in the next one. A signal stops a
worker as a window does.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog import load_catalog

from firnline.app.places import now_ms
from firnline.model.times import MINUTE_MS
from firnline.spark.session import session
from firnline.worker.report import RoundReport
from firnline.worker.working import Worker
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket
from tests.stores.careless import Careless, careless

TABLES, KEPT = 4, 1
SPAN_MS = 10_000
POLICY = "keep: {{last: 1}}\ngrace: 0s\nblast-radius: 100%\nworker: {{every: 1s, orphans: off, {more}}}\n"
FIRNLINE = str(Path(sys.executable).with_name("firnline"))


class SlowLake:
    """Tables in a bucket that a slow server stands before, which notes when it was asked."""

    def __init__(self, folder: Path, server: Server, slow: Careless) -> None:
        self.folder, self.asked, self.methods, self.pause_s = folder, list[int](), list[str](), 0.0
        self.slow = re.compile("")
        slow.before = self._ask
        bucket = make_bucket(server, unique("hours"))
        where = {"type": "sql", "uri": f"sqlite:///{folder}/lake.db", "warehouse": f"{bucket}/warehouse"}
        self.theirs = load_catalog("lake", **where, **server.settings)
        self.theirs.create_namespace("db")
        for number in range(TABLES):
            made = self.theirs.create_table(f"db.t{number}", schema=pa.schema([("x", pa.int64())]))
            for value in range(5):
                made.append(pa.table({"x": [value]}))
        self.cold = {**where, "uri": f"sqlite:///{folder}/cold.db", "warehouse": f"{bucket}/cold", **server.settings}
        self.settings = {"catalog": {"lake": {**where, **server.settings, "s3.endpoint": slow.url}}}
        self.write_settings()

    def write_settings(self) -> None:
        (self.folder / ".pyiceberg.yaml").write_text(yaml.safe_dump(self.settings))

    def with_tier(self) -> str:
        """Adds the catalog of a tier, and returns what firnline.yaml says of it: one write at a time."""
        endpoint, root = self.settings["catalog"]["lake"]["s3.endpoint"], self.cold["warehouse"]
        self.settings["catalog"]["cold"] = {**self.cold, "s3.endpoint": endpoint}
        self.write_settings()
        tier = f"archive: cold\ntiers: {{cold: {{root: {root!r}}}}}\ncatalogs: {{cold: {{archive: off}}}}\n"
        return f"{tier}stores: {{{root!r}: {{writes-at-once: 1}}}}\n"

    def _ask(self, method: str, path: str) -> None:
        self.asked.append(now_ms())
        self.methods.append(method)
        if self.slow.search(f"{method} {path}"):
            time.sleep(self.pause_s)

    def snapshots(self) -> list[int]:
        return [len(self.theirs.load_table(f"db.t{number}").snapshots()) for number in range(TABLES)]

    def write_policy(self, more: str, besides: str = "") -> Path:
        path = self.folder / "firnline.yaml"
        path.write_text(POLICY.format(more=more) + besides)
        return path

    def rows(self) -> list[list[Any]]:
        return [
            sorted(self.theirs.load_table(f"db.t{number}").scan().to_arrow()["x"].to_pylist())
            for number in range(TABLES)
        ]


@pytest.fixture
def lake(tmp_path: Path, moto_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowLake]:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.chdir(tmp_path)
    with careless(moto_server.url) as slow:
        yield SlowLake(tmp_path, moto_server, slow)


def stopped_by_its_window(lake: SlowLake, lasts_ms: int, engine: str = "auto", besides: str = "") -> RoundReport:
    """Returns what was told of a round whose window closed in its midst. Nothing is asked then; later ones end it."""
    rounds: list[RoundReport] = []
    shift = MINUTE_MS - now_ms() % MINUTE_MS - lasts_ms  # by this machine's clock the next minute begins so soon
    closes = (now_ms() + shift) // MINUTE_MS * MINUTE_MS + MINUTE_MS
    end, start = (time.strftime("%H:%M", time.gmtime(each / 1000)) for each in (closes, closes + 5 * MINUTE_MS))
    config = lake.write_policy(f'window: "{start}-{end} UTC"', besides)
    worker = Worker(str(config), lake.folder / "m.json", rounds.append, engine)
    worker.clock = lambda: now_ms() + shift
    worker.run(once=True)
    assert rounds[0].stopped
    assert lake.asked
    time.sleep(3)  # what executors still ask comes now
    assert max(lake.asked) + shift <= closes
    assert max(lake.snapshots()) > KEPT
    lake.pause_s, before = 0.0, len(lake.asked)
    worker.run(once=True)
    assert len(lake.asked) == before  # the window is shut
    lake.write_policy("window: always", besides)
    worker.run(once=True)
    worker.run(once=True)
    assert rounds[-1].problems == (), rounds[-1].to_json()
    assert lake.snapshots() == [KEPT] * TABLES
    assert lake.rows() == [[0, 1, 2, 3, 4]] * TABLES
    return rounds[0]


def test_nothing_is_asked_outside_the_window_and_the_next_one_ends_it(lake: SlowLake) -> None:
    lake.pause_s = 0.15
    stopped_by_its_window(lake, 6_000)


@pytest.mark.full
def test_copies_to_a_tier_end_with_the_window_and_the_next_one_goes_on(lake: SlowLake) -> None:
    lake.pause_s, lake.slow = 0.5, re.compile("^(PUT|POST) [^?]*/cold/")
    first = stopped_by_its_window(lake, 12_000, besides=lake.with_tier())
    assert first.problems == (), first.to_json()
    cold = load_catalog("cold", **lake.cold)
    assert [len(cold.load_table(each).snapshots()) for each in cold.list_tables("db")] == [4] * TABLES


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_executors_end_with_the_window_and_the_next_one_goes_on(lake: SlowLake) -> None:
    session()  # the window must not go by while it starts
    lake.pause_s, lake.slow = 3.0, re.compile("^GET .*[.]avro")
    first = stopped_by_its_window(lake, 25_000, "spark")
    assert first.problems == (), first.to_json()


@pytest.mark.full
def test_reads_stay_within_the_share_of_what_the_store_takes(lake: SlowLake) -> None:
    """Of 150 reads a second that are stated, a fifth is 30: no ten seconds see more, and all of it is used. Those of
    leases go at once, and all others wait for it.
    """
    config = lake.write_policy("budget: 20%")
    bucket = lake.theirs.load_table("db.t0").location().split("/warehouse")[0]
    config.write_text(config.read_text() + f"stores: {{{bucket}: {{reads-per-second: 150}}}}\n")
    command = [FIRNLINE, "worker", "--once", "--config", str(config), "--memory", str(lake.folder / "m.json")]
    assert subprocess.run(command, check=False).returncode == 0
    reads = sorted(at for at, method in zip(lake.asked, lake.methods, strict=True) if method in ("GET", "HEAD"))
    assert reads[-1] - reads[0] > SPAN_MS, "too little to do"
    within = [bisect_left(reads, at + SPAN_MS) - number for number, at in enumerate(reads)]
    assert max(within) <= 30 * SPAN_MS / 1000 * 1.1, within
    assert max(within) >= 30 * SPAN_MS / 1000 * 0.9, within


@pytest.mark.full
def test_a_signal_ends_it_within_seconds_and_another_goes_on(lake: SlowLake) -> None:
    config, memory = lake.write_policy("window: always"), lake.folder / "m.json"
    lake.pause_s = 0.15
    process = subprocess.Popen(
        [FIRNLINE, "worker", "--config", str(config), "--memory", str(memory), "--engine", "local", "--json"],
        env={**os.environ, "FIRNLINE_LEASE": "4s"},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    while len(lake.asked) < 40:
        time.sleep(0.05)
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 30
    assert process.returncode == 0, err
    assert b"Traceback" not in err
    assert b'"stopped": true' in out
    lake.pause_s = 0.0
    rounds: list[RoundReport] = []
    for _ in range(2):
        Worker(str(config), memory, rounds.append).run(once=True)
    assert rounds[-1].problems == ()
    assert lake.snapshots() == [KEPT] * TABLES
    assert lake.rows() == [[0, 1, 2, 3, 4]] * TABLES
