"""What is wrong around a worker is told with a way out, and nothing is lost: a configuration that breaks, a clock that
jumps back, a disk that is full.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog import load_catalog

from firnline.app.places import now_ms
from firnline.model.times import HOUR_MS, MINUTE_MS
from firnline.worker.report import RoundReport
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket
from tests.neighbours.lakes import RealLake
from tests.tiers.cutting import passing_through
from tests.tiers.test_failing import Refusing
from tests.worker.lakes import one_round, snapshots, worked_lake, worker

FIRNLINE = str(Path(sys.executable).with_name("firnline"))
KEPT, ROWS = 2, [0, 1, 2, 3, 4]
ENDED = {"done", "cancelled"}
FULL = bool(os.environ.get("FIRNLINE_FULL"))


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    monkeypatch.setenv("FIRNLINE_LEASE", "3s")
    with worked_lake(tmp_path, monkeypatch, tables=1) as made:
        yield made


def once(folder: Path, largest: int | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Returns what a worker said in one round, on a disk that has no room for files larger than that."""

    def fill_disk() -> None:
        if largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    command = [FIRNLINE, "worker", "--once", "--json", "--config", str(folder / "firnline.yaml"), "--engine", "local"]
    return subprocess.run(
        [*command, "--memory", str(folder / "memory.json")],
        preexec_fn=fill_disk,
        env={**os.environ, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


# ---- the configuration


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("worker: {window: never}\n", "window takes hours with a time zone"),
        ("keep: {last: 2]\n", "YAML"),
        ("keep: {lst: 2}\n", "last"),
        ("worker: {tabels: [lake.db.t0]}\n", "tables"),
    ],
)
def test_a_configuration_that_is_broken_at_the_start(lake: RealLake, text: str, said: str) -> None:
    (lake.folder / "firnline.yaml").write_text(text)
    ended = once(lake.folder)
    error = json.loads(ended.stderr)["error"]
    assert (ended.returncode, error["kind"]) == (2, "policy")
    assert "firnline.yaml:1" in error["message"]
    assert said in f"{error['message']} {error['hint']}", error
    assert snapshots(lake, "t0") == 5


def test_one_that_breaks_later_is_told_once_and_again_when_it_breaks_otherwise(
    lake: RealLake, caplog: pytest.LogCaptureFixture
) -> None:
    working = worker(lake, [])
    config, good = lake.folder / "firnline.yaml", lake.policy
    working._good = None
    for text in (good, "keep: {lst: 2}\n", "keep: {lst: 2}\n", "", "", good, "keep: {lst: 2}\n"):
        config.write_text(text)
        found = working._configured()
        assert found.settings["grace"].value == 0
    told = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert [("lst" in each, "says nothing any more" in each) for each in told] == [
        (True, False),
        (False, True),
        (True, False),
    ]


def test_a_memory_of_another_version_costs_a_look(lake: RealLake, caplog: pytest.LogCaptureFixture) -> None:
    lake.policy = lake.policy.replace("every: 1s", "every: 1h")
    assert one_round(lake).looked == 1
    memory = lake.folder / "memory.json"
    said = json.loads(memory.read_text())
    memory.write_text(json.dumps({**said, "version": 99}))
    assert one_round(lake).looked == 1
    assert "is of version 99" in caplog.text
    assert json.loads(memory.read_text())["version"] == said["version"]
    assert one_round(lake).looked == 0


# ---- the clock


@pytest.mark.sampled(2)
@pytest.mark.parametrize("calls", [0, 12, 60, 75] if FULL else [12, 60])
@pytest.mark.parametrize("back_ms", [2 * MINUTE_MS, HOUR_MS], ids=["a little", "far"])
def test_a_clock_that_jumps_back_in_the_middle_of_a_round(lake: RealLake, calls: int, back_ms: int) -> None:
    """After it was looked at so often. A little is nothing; by far, and the store's own clock shows it: then no age is
    trusted, which is told, and what was begun goes on when the clock is right again.
    """
    asked = iter(range(10**9))
    rounds: list[RoundReport] = []
    working = worker(lake, rounds)
    working.clock = lambda: now_ms() if next(asked) < calls else now_ms() - back_ms
    working.run(once=True)
    hints = {each.problem.hint.partition(";")[0] for each in rounds[0].problems if each.problem}
    assert hints == ({"set the clock"} if back_ms == HOUR_MS else set()), rounds[0].to_json()
    assert rounds[0].again_ms <= working.clock() + MINUTE_MS
    _check_the_next_round_ends_it(lake)


# ---- a disk that is full


def _full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _check_the_next_round_ends_it(lake: RealLake) -> None:
    """A lease that could not be given back runs out first: until then the table is another's, which is no problem."""
    assert all(rows == ROWS[: len(rows)] for rows in lake.read_all("t0"))
    for _ in range(5):
        ended = one_round(lake, later_ms=2 * MINUTE_MS)
        assert ended.problems == (), ended.to_json()
        states = {each.state for each in lake.firnline().runs("lake.db.t0")}
        if states <= ENDED and snapshots(lake, "t0") == KEPT:
            break
        (lake.folder / "memory.json").unlink()
        time.sleep(1)
    assert (states - ENDED, snapshots(lake, "t0")) == (set(), KEPT)
    assert lake.read("t0") == ROWS
    assert lake.firnline().check("lake.db.t0").sound


@pytest.mark.parametrize("after", range(40) if FULL else (0, 2, 5, 8, 13))
@pytest.mark.sampled(1)
def test_a_lakes_disk_that_fills_up_at_any_write_of_a_run(
    lake: RealLake, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """Records, metadata and leases of a local lake: what was begun stays, and goes on when there is room again. Only a
    lease that cannot be given back is nobody's trouble: it runs out.
    """
    refusing = Refusing("/warehouse/", _full, after)
    with passing_through(refusing, lake.folder, monkeypatch):
        report = one_round(lake)
    is_done = [each.status.state for each in report.steps if each.status] == ["done"]
    if any(not is_done or "/lease/" not in str(each) for each in refusing.seen[after:]):
        told = [each.problem for each in report.problems if each.problem]
        assert any("No space left on device" in each.message for each in told), report.to_json()
        assert any("make room" in each.hint for each in told), report.to_json()
    _check_the_next_round_ends_it(lake)


@pytest.mark.parametrize("largest", [0, 700, 3_000] if FULL else [0, 3_000])
@pytest.mark.full
def test_a_disk_without_room_for_files_of_some_size(lake: RealLake, largest: int) -> None:
    """Refused by the kernel itself: files of the lake, the catalog's database, the cache, and the worker's memory."""
    lake.firnline()
    ended = once(lake.folder, largest)
    assert ended.returncode == 3, ended.stderr
    assert "Traceback" not in ended.stderr
    problems = [each["error"] for each in json.loads(ended.stdout)["steps"] if "error" in each]
    assert problems
    assert all(each["hint"] for each in problems), problems
    _check_the_next_round_ends_it(lake)


@pytest.mark.full
def test_a_machine_whose_own_disk_is_full_keeps_a_lake_elsewhere_in_policy(
    tmp_path: Path, moto_server: Server, database: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the worker's memory, nor a cache, nor a temporary file can be written."""
    settings = {"type": "sql", "uri": database.url, "warehouse": make_bucket(moto_server, unique("full"))}
    table = _table({**settings, **moto_server.settings})
    (tmp_path / ".pyiceberg.yaml").write_text(
        yaml.safe_dump({"catalog": {"lake": {**settings, **moto_server.settings}}})
    )
    (tmp_path / "firnline.yaml").write_text("keep: {last: 2}\ngrace: 0s\nblast-radius: 100%\nworker: {every: 1s}\n")
    own = {"PYICEBERG_HOME": str(tmp_path), "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "FIRNLINE_CACHE": "disk"}
    ended = once(tmp_path, 0, AWS_EC2_METADATA_DISABLED="true", XDG_CACHE_HOME=str(tmp_path / "own"), **own)
    assert "Traceback" not in ended.stderr
    assert "memory.json cannot be written" in ended.stderr
    assert "make room" in ended.stderr
    assert not (tmp_path / "memory.json").exists()
    again = once(tmp_path, AWS_EC2_METADATA_DISABLED="true", XDG_CACHE_HOME=str(tmp_path / "own"), **own)
    assert again.returncode == 0, again.stdout + again.stderr
    assert (ended.returncode, len(table.refresh().snapshots())) == (0, KEPT), ended.stdout
    assert sorted(table.scan().to_arrow()["x"].to_pylist()) == ROWS


def _table(settings: dict[str, str]) -> Any:
    theirs = load_catalog("lake", **settings)
    theirs.create_namespace("db")
    made = theirs.create_table("db.t0", schema=pa.schema([("x", pa.int64())]))
    for value in ROWS:
        made.append(pa.table({"x": [value]}))
    return made
