"""A round of the worker: every table comes into policy, one bad table stops no other, and nothing is done twice."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from firnline.app.lake_wide.runs import LakeRuns
from firnline.app.places import now_ms
from firnline.cli.main import run
from firnline.model.times import DAY_MS
from firnline.settings import read_config
from firnline.testing.dated import date
from tests.neighbours.lakes import RealLake
from tests.worker.lakes import one_round, snapshots, worked_lake, worker

KEPT = 2


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    with worked_lake(tmp_path, monkeypatch) as made:
        yield made


def test_every_table_comes_into_policy(lake: RealLake) -> None:
    report = one_round(lake)
    assert report.problems == ()
    assert report.looked == 3
    for name in ("t0", "t1", "t2"):
        assert snapshots(lake, name) == KEPT
        assert lake.read(name) == [0, 1, 2, 3, 4]
        assert lake.firnline().check(f"lake.db.{name}").sound
    states = [each.status.state for each in report.steps if each.name == "expire" and each.status]
    assert states == ["done"] * 3


def test_a_table_is_not_looked_at_again_before_it_is_due(lake: RealLake) -> None:
    lake.policy = lake.policy.replace("every: 1s", "every: 1h")
    assert one_round(lake).looked == 3
    again = one_round(lake)
    assert (again.looked, again.steps) == (0, ())


def test_one_bad_table_stops_no_other_and_is_backed_off_from(lake: RealLake) -> None:
    lake.policy += "sharing: none\n"  # else the others stop too: nobody can tell what it needs of them
    table = lake.table("t1")
    lost = Path(table.snapshots()[0].manifest_list.removeprefix("file://"))
    lost.write_bytes(b"damaged")
    report = one_round(lake)
    assert {each.table for each in report.problems if each.name == "expire"} == {"lake.db.t1"}, report.to_json()
    assert (snapshots(lake, "t0"), snapshots(lake, "t1"), snapshots(lake, "t2")) == (KEPT, 5, KEPT)
    remembered = json.loads((lake.folder / "memory.json").read_text())["tables"]["lake.db.t1"]
    assert remembered["failures"] == 1
    assert remembered["again_ms"] > report.ended_ms
    lake.append("t0", 9)
    again = one_round(lake, later_ms=5_000)
    assert {each.table for each in again.steps if each.name == "expire"} == {"lake.db.t0"}


def test_runs_that_wait_for_grace_are_purged_when_it_is_over(lake: RealLake) -> None:
    lake.policy = lake.policy.replace("grace: 0s", "grace: 2s")
    first = one_round(lake)
    assert {each.status.state for each in first.steps if each.status} == {"committed"}
    assert first.again_ms <= first.ended_ms + 2_500
    planned = {each.status.id: each.status.run.plan["victims"]["files"] for each in first.steps if each.status}
    rounds = [first]
    working = worker(lake, rounds)
    ended: dict[object, int] = {}
    while len(ended) < len(planned):  # on a busy machine one round may find the grace of some over, and not of all
        working._sleep_until(rounds[-1].again_ms)
        working.run(once=True)
        done = [each.status for each in rounds[-1].steps if each.status and each.status.state == "done"]
        ended |= {each.id: each.outcomes["deleted"].files for each in done if each.id in planned}
        assert len(rounds) < 20
    assert ended == planned
    assert sum(planned.values()) > 0


def test_what_waits_for_a_person_gets_no_second_plan(lake: RealLake) -> None:
    lake.policy += "approve-above: 1KiB\n"
    waiting = [each.status for each in one_round(lake).steps if each.status]
    assert {each.state for each in waiting} == {"planned"}
    for _ in range(2):
        again = one_round(lake)
        assert {each.status.state for each in again.steps if each.status} == {"planned"}
    assert len(lake.firnline().runs("lake.db.t0")) == 1
    lake.firnline().approve(waiting[0].id, by="A. Person")
    ended = {each.table: each.status.state for each in one_round(lake).steps if each.name == "resume" and each.status}
    assert sorted(ended.values()) == ["done", "planned", "planned"]


def test_it_does_not_go_round_and_round_for_what_waits(lake: RealLake) -> None:
    lake.policy = lake.policy.replace("every: 1s", "every: 1h") + "approve-above: 1KiB\n"
    for _ in range(2):
        report = one_round(lake)
        assert report.again_ms >= report.ended_ms + 3_000_000


def test_a_rule_for_a_table_that_is_not_there_is_told_and_stops_nothing(lake: RealLake) -> None:
    lake.policy += "catalogs: {lake: {namespaces: {db: {tables: {telemtry: {keep: {last: 9}}}}}}}\n"
    report = one_round(lake)
    (told,) = report.problems
    assert (told.name, told.table) == ("config", "the lake")
    assert "no table 'telemtry'" in str(told.problem)
    assert snapshots(lake, "t0") == KEPT


def test_tables_are_those_that_the_file_names(lake: RealLake) -> None:
    lake.policy = lake.policy.replace("worker: {", "worker: {tables: [lake.db.t1, lake.db.gone], ")
    report = one_round(lake)
    assert [snapshots(lake, name) for name in ("t0", "t1", "t2")] == [5, KEPT, 5]
    assert [(each.name, each.table) for each in report.problems] == [("resume", "lake.db.gone")]  # told once


def test_memory_that_is_damaged_costs_a_look(lake: RealLake, caplog: pytest.LogCaptureFixture) -> None:
    for data in (b"\xff{", b"[]", b'{"tables": {"lake.db.t0": 3}}', b'{"tables": {"lake.db.t0": {"looked_ms": "x"}}}'):
        (lake.folder / "memory.json").write_bytes(data)
        with caplog.at_level(logging.WARNING):
            assert one_round(lake).problems == ()
        assert "is not understood" in caplog.text


def test_a_configuration_that_breaks_leaves_the_last_good_one_in_force(
    lake: RealLake, caplog: pytest.LogCaptureFixture
) -> None:
    rounds: list[object] = []
    working = worker(lake, rounds)  # type: ignore[arg-type]

    def break_it(report: object) -> None:
        rounds.append(report)
        (lake.folder / "firnline.yaml").write_text("keep: {lst: 2}\n")
        for name in ("t0", "t1", "t2"):
            lake.append(name, 9)
        if len(rounds) == 2:
            working.stop.set()

    working.told = break_it
    working.run()
    assert snapshots(lake, "t0") == KEPT + 1  # what came after the second round; the first policy was in force in it
    assert "the configuration of before counts" in caplog.text


@pytest.mark.parametrize("text", ["", "grace: 0s\n"], ids=["emptied", "half written"])
def test_a_configuration_that_is_just_being_written_does_not_count(lake: RealLake, text: str) -> None:
    rounds: list[object] = []
    working = worker(lake, rounds)  # type: ignore[arg-type]
    config = lake.folder / "firnline.yaml"
    working._good = read_config(str(config))
    before = working._good
    config.write_text(text)
    working.stop.wait = lambda timeout=None: bool(config.write_text(lake.policy)) and False  # type: ignore[method-assign]
    assert working._configured() == before
    config.write_text("")
    working.stop.wait = lambda timeout=None: False  # type: ignore[method-assign]
    assert working._configured() == before  # one that says nothing any more never counts
    config.write_text("keep: {last: 7}\n")
    assert working._configured() != before


def test_a_plan_that_was_only_saved_holds_nothing_up(lake: RealLake) -> None:
    """As a stop leaves one, between planning a lake and approving its plans."""
    for name in ("t0", "t1"):
        lake.firnline().plan(f"lake.db.{name}", save=True)
    assert one_round(lake).looked == 3
    assert [snapshots(lake, name) for name in ("t0", "t1", "t2")] == [KEPT] * 3


def test_searches_that_a_killed_worker_left_are_carried_out(lake: RealLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """1. A search finds garbage, and its plan is saved. 2. The process is killed before it carries it out."""

    def die(*said: object) -> None:
        raise SystemExit

    garbage = old_garbage(lake, "t1")
    with monkeypatch.context() as patched:
        patched.setattr(LakeRuns, "carry_out", die)
        patched.setattr(LakeRuns, "calling_off", lambda self, *_: nullcontext())  # no process is left to do it
        with pytest.raises(SystemExit):
            one_round(lake)
    assert garbage.exists()
    left = [each for each in lake.firnline().runs("lake.db.t1") if each.state == "planned"]
    assert [(each.run.is_meant, each.run.search is not None) for each in left] == [(True, True)]
    resumed = [each.status for each in one_round(lake).steps if each.name == "resume" and each.status]
    assert [each.state for each in resumed if each.id == left[0].id] == ["done"]
    assert not garbage.exists()


def old_garbage(lake: RealLake, name: str) -> Path:
    """Returns a file of a table's folder that nobody needs, and that is old enough to go."""
    garbage = Path(lake.table(name).location().removeprefix("file://")) / "data" / "garbage.parquet"
    garbage.write_bytes(b"x" * 100)
    date(garbage, now_ms() - 30 * DAY_MS)
    return garbage


@pytest.mark.full
def test_a_clock_that_is_put_back_ends_a_sleep(lake: RealLake) -> None:
    rounds: list[object] = []
    working = worker(lake, rounds)  # type: ignore[arg-type]
    ahead = iter([10**9, 10**9])
    working.clock = lambda: now_ms() + next(ahead, 0)
    began = time.monotonic()
    working._sleep_until(now_ms() + 10**9 + 300)
    assert time.monotonic() - began < 60


def test_a_broken_configuration_at_the_start_ends_it(lake: RealLake, capsys: pytest.CaptureFixture[str]) -> None:
    (lake.folder / "firnline.yaml").write_text("worker: {window: never}\n")
    assert run(["worker", "--once", "--json", "--config", str(lake.folder / "firnline.yaml")]) == 2
    assert "firnline.yaml:1: window" in "".join(capsys.readouterr())


@pytest.mark.full
def test_a_catalog_that_cannot_be_reached_is_told_and_stops_no_other(lake: RealLake) -> None:
    import yaml

    settings = yaml.safe_load((lake.folder / ".pyiceberg.yaml").read_text())
    settings["catalog"]["gone"] = {"type": "rest", "uri": "http://127.0.0.1:9"}
    (lake.folder / ".pyiceberg.yaml").write_text(yaml.safe_dump(settings))
    lake.policy += "sharing: none\n"  # else the others stop too: a table there may need their files
    report = one_round(lake)
    assert {each.table for each in report.problems if each.name == "expire"} == {"gone"}, report.to_json()
    assert snapshots(lake, "t0") == KEPT


def test_a_clock_that_was_put_back_does_not_stop_it(lake: RealLake) -> None:
    one_round(lake)
    memory = json.loads((lake.folder / "memory.json").read_text())
    for each in memory["tables"].values():
        each["looked_ms"] += 10**9
        each["again_ms"] = each["looked_ms"] + 10**9
    (lake.folder / "memory.json").write_text(json.dumps(memory))
    assert one_round(lake).looked == 3
