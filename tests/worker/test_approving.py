"""A policy may demand a person's word before so much goes: no way leads around it, and one word lets the run go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from firnline.app.places import now_ms
from firnline.cli.main import run
from firnline.errors import AwaitsApproval, UsageError
from tests.neighbours.lakes import RealLake, real_lake

LARGE = "approve-above: 1KiB\n"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    with real_lake(tmp_path, monkeypatch) as made:
        made.create("t")
        for number in range(4):
            made.append("t", number)
        made.policy = LARGE
        yield made


def snapshots(lake: RealLake) -> int:
    return len(lake.table("t").snapshots())


def test_a_large_run_waits_whatever_is_tried(lake: RealLake) -> None:
    status = lake.expire("t")
    assert (status.state, snapshots(lake)) == ("planned", 4)
    assert f"firnline approve {status.id} --by NAME" in status.waits
    firnline = lake.firnline()
    with pytest.raises(AwaitsApproval, match="approve-above demands a person's word"):
        firnline.commit(status.id)
    assert firnline.advance(status.id).state == "planned"
    assert [each.state for each in firnline.resume("lake.db.t")] == ["planned"]
    assert [each.state for answer in firnline.several().resume() for each in answer.value or ()] == ["planned"]
    assert snapshots(lake) == 4


def test_a_persons_word_lets_it_go_on_and_is_written_down(lake: RealLake, capsys: pytest.CaptureFixture[str]) -> None:
    status = lake.expire("t")
    assert run(["approve", status.id, "--by", "A. Person", "--note", "seen, #42", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["approval"]["by"], told["approval"]["note"]) == ("A. Person", "seen, #42")
    ended = lake.firnline().advance(status.id)
    assert (ended.state, snapshots(lake)) == ("done", 1)
    assert ended.to_json()["approval"]["by"] == "A. Person"
    with pytest.raises(UsageError, match="cannot be approved"):
        lake.firnline().approve(status.id, by="A. Person")


def test_smaller_ones_need_none_and_the_bound_of_now_counts(lake: RealLake) -> None:
    lake.policy = "approve-above: 1GiB\n"
    waiting = lake.firnline().plan("lake.db.t", older_than=now_ms(), retain_last=3, save=True)
    lake.policy = LARGE
    with pytest.raises(AwaitsApproval):
        lake.firnline().commit(str(waiting.plan.run))
    lake.policy = "approve-above: 1GiB\n"
    assert lake.firnline().commit(str(waiting.plan.run)).state == "committed"
    assert snapshots(lake) == 3


def test_a_table_cannot_lift_it_by_its_own_properties(lake: RealLake) -> None:
    with lake.table("t").transaction() as change:
        change.set_properties({"firnline.approve-above": "off", "approve-above": "off"})
    assert lake.expire("t").state == "planned"
