"""`firnline pointers` as a person has it, and the same facts as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firnline.cli.main import run
from tests.neighbours.lakes import RealLake, real_lake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    with real_lake(tmp_path, monkeypatch) as found:
        (tmp_path / "firnline.yaml").write_text("pointers: identifier")
        monkeypatch.chdir(tmp_path)
        yield found


def facts(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert run(["pointers", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_sync_tells_what_was_stale(lake: RealLake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.create("t")
    assert [each["outcome"] for each in facts(capsys, "sync")["tables"][0]["pointers"]] == ["new"]
    lake.append("t", 1)
    (pointer,) = facts(capsys, "sync", "lake.db.t")["tables"][0]["pointers"]
    assert (pointer["outcome"], pointer["was_behind"]["commits"]) == ("moved on", 1)
    assert run(["pointers", "sync"]) == 0
    assert "1 table, 0 pointers stale" in capsys.readouterr().out


def test_sync_goes_on_after_a_table_that_fails(lake: RealLake, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("bad", "good"):
        lake.create(name)
    Path(lake.table("bad").location().removeprefix("file://"), "db_bad_main.ver").write_text("{")
    assert run(["pointers", "sync"]) == 14
    said = capsys.readouterr()
    assert "db_good_main.ver" in said.out
    assert "is no pointer" in said.err


def test_resolve_prints_the_metadata_last(lake: RealLake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.create("t")
    place = lake.table("t").location()
    assert run(["pointers", "resolve", place]) == 10
    assert "no pointer in" in capsys.readouterr().err
    facts(capsys, "sync")
    found = facts(capsys, "resolve", place, "--table", "db.t")
    assert found["metadata"] == lake.table("t").metadata_location
    assert run(["pointers", "resolve", place]) == 0
    assert capsys.readouterr().out.split()[-1] == found["metadata"]


def test_watch_tells_one_line_for_each_table_that_moved(lake: RealLake, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        lake.create(name)
    assert run(["pointers", "watch", "--looks", "2", "--every", "0s", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["table"] for each in lines] == ["lake.db.one", "lake.db.two"]


def test_without_a_policy_the_way_is_told(lake: RealLake, capsys: pytest.CaptureFixture[str]) -> None:
    Path("firnline.yaml").write_text("")
    lake.create("t")
    assert run(["pointers", "sync"]) == 0
    assert "`pointers: identifier`" in capsys.readouterr().out
