"""`firnline orphans` and `firnline dropped` as a person or a program calls them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from firnline.cli.main import run
from harness.crowds import Crowd

CLASSES = {"needed", "another-table", "own-records", "young", "unknown-age", "unknown-kind", "outside", "near-miss",
           "victim"}  # fmt: skip


@pytest.fixture
def lake(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> Crowd:
    monkeypatch.chdir(crowd.folder)
    monkeypatch.setenv("PYICEBERG_HOME", str(crowd.folder))
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", crowd.pointers.uri)
    crowd.table("t")
    crowd.table("u")
    return crowd


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert run([*arguments, "--json"]) == code
    out, err = capsys.readouterr()
    return json.loads(out if code == 0 else err[err.index("{") :])


def test_a_dry_run_writes_nothing_and_adds_up(lake: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    lake.stray("t/data/left.parquet")
    before = sorted(str(path) for path in lake.folder.rglob("*"))
    found = said(capsys, "orphans", lake.name("t"), "--dry-run")
    assert found["classes"].keys() == CLASSES
    assert sum(each["files"] for each in found["classes"].values()) == found["listed"]["files"]
    assert sum(each["bytes"] for each in found["classes"].values()) == found["listed"]["bytes"]
    assert found["victims"] == {"files": 1, "bytes": 8, "by_kind": {"data": {"files": 1, "bytes": 8}}}
    assert found["run"] is None
    assert sorted(str(path) for path in lake.folder.rglob("*")) == before


def test_yes_without_grace_purges_at_once(lake: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    stray = lake.stray("t/data/left.parquet")
    done = said(capsys, "orphans", lake.name("t"), "--grace", "0s", "--yes")
    assert done["state"] == "done"
    assert done["outcomes"]["deleted"] == {"files": 1, "bytes": 8}
    assert stray not in lake.files()
    lake.check()
    again = said(capsys, "orphans", lake.name("t"), "--grace", "0s", "--yes")
    assert again["victims"]["files"] == 0
    assert again["run"] is None


def test_without_yes_the_plan_waits_for_a_word(lake: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    stray = lake.stray("t/data/left.parquet")
    waiting = said(capsys, "orphans", lake.name("t"), "--grace", "0s")
    assert (waiting["state"], stray in lake.files()) == ("planned", True)
    assert said(capsys, "resume")["runs"][0]["state"] == "planned"
    assert said(capsys, "commit", waiting["run"])["state"] == "committed"
    assert said(capsys, "purge", waiting["run"])["state"] == "done"
    assert stray not in lake.files()


def test_undo_calls_it_off(lake: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    stray = lake.stray("t/data/left.parquet")
    waiting = said(capsys, "orphans", lake.name("t"), "--yes")
    assert waiting["state"] == "committed"
    assert said(capsys, "undo", waiting["run"])["state"] == "undone"
    assert said(capsys, "purge", waiting["run"])["state"] == "undone"
    assert stray in lake.files()


def test_the_list_of_victims_is_written(lake: Crowd, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    stray = lake.stray("t/data/left.parquet")
    said(capsys, "orphans", lake.name("t"), "--dry-run", "--files", str(tmp_path / "out.parquet"))
    rows = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert rows == [{"path": stray, "kind": "data", "size": 8}]


def test_a_folder_is_searched_and_its_runs_are_found_by_their_name(
    lake: Crowd, capsys: pytest.CaptureFixture[str]
) -> None:
    strays = {lake.stray("t/data/left.parquet"), lake.stray("u/data/left.parquet")}
    lake.stray("nowhere/left.parquet")
    folder = str(lake.folder / "lake")
    waiting = said(capsys, "orphans", folder, "--yes", "--grace", "1s")
    assert waiting["victims"]["files"] == 2
    assert waiting["classes"]["outside"]["files"] == 1
    assert said(capsys, "runs", "show", waiting["run"])["state"] == "committed"
    said(capsys, "undo", waiting["run"])
    done = said(capsys, "orphans", folder, "--yes", "--grace", "0s")
    assert done["outcomes"]["deleted"]["files"] == 2
    assert not strays & lake.files()
    lake.check()


def test_the_cap_holds(lake: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(400):
        lake.stray(f"t/data/{number}.parquet")
    refused = said(capsys, "orphans", lake.name("t"), "--yes", "--grace", "0s", code=14)
    assert refused["error"]["kind"] == "blast-radius"
    done = said(capsys, "orphans", lake.name("t"), "--yes", "--grace", "0s", "--blast-radius", "100%")
    assert done["outcomes"]["deleted"]["files"] == 400


@pytest.mark.parametrize(("form", "stamp"), [("csv", "2020-01-01T00:00:00Z"), ("csv", "1577836800000")])
def test_an_inventory_only_proposes(
    lake: Crowd, capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str, stamp: str
) -> None:
    """It names everything that is there, all of it old; the store says that one file is young and one has grown."""
    old, young, grown = (lake.stray(f"t/data/{name}.parquet", days) for name, days in
                         (("old", 10), ("young", 0.1), ("grown", 10)))  # fmt: skip
    there = [f"file://{path}" for path in (lake.folder / "lake/t").rglob("*") if path.is_file()]
    gone = f"{lake.lake}/t/data/gone.parquet"
    inventory = tmp_path / f"inventory.{form}"
    sizes = {path: os.path.getsize(path.removeprefix("file://")) for path in there} | {gone: 5}
    inventory.write_text("path,size,modified\n" + "".join(f"{path},{size},{stamp}\n" for path, size in sizes.items()))
    (lake.folder / "lake/t/data/grown.parquet").write_bytes(b"more than before")
    lake.set_age(lake.folder / "lake/t/data/grown.parquet", 10)
    done = said(capsys, "orphans", lake.name("t"), "--inventory", str(inventory), "--yes", "--grace", "0s")
    assert done["outcomes"] == {
        "deleted": {"files": 1, "bytes": 8}, "missing": {"files": 1, "bytes": 5}, "spared": {"files": 2, "bytes": 16},
    }  # fmt: skip
    assert old not in lake.files()
    assert {young, grown} <= lake.files()
    lake.check()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--same", "nonsense"], "A=B"),
        (["--near-misses", "shrug"], "stop, keep"),
        (["--older-than", "yesterday"], "yesterday"),
        (["--inventory", "missing.csv"], "missing.csv"),
        (["--grace", "soon"], "soon"),
    ],
)
def test_bad_input_is_said_and_changes_nothing(
    lake: Crowd, capsys: pytest.CaptureFixture[str], arguments: list[str], word: str
) -> None:
    lake.stray("t/data/left.parquet")
    before = lake.files()
    problem = said(capsys, "orphans", lake.name("t"), *arguments, code=2)["error"]
    assert word in problem["message"] + problem["hint"]
    assert lake.files() == before


# ---------------------------------------------------------------- dropped tables


def test_a_dropped_table_is_shown_and_goes_only_by_its_name(lake: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    lake.pointers.drop("u")
    folder = str(lake.folder / "lake")
    (shown,) = said(capsys, "dropped", folder)["dropped"]
    assert shown["folder"].endswith("lake/u")
    assert shown["files"] == sum(1 for path in (lake.folder / "lake/u").rglob("*") if path.is_file())
    assert len(shown["uuid"]) == 36
    said(capsys, "dropped", folder, "--purge", f"{folder}/t", "--yes", code=2)
    said(capsys, "dropped", folder, "--purge", folder, "--yes", code=2)
    done = said(capsys, "dropped", folder, "--purge", f"{folder}/u", "--yes", "--grace", "0s")
    assert done["state"] == "done"
    assert not [path for path in lake.files() if "/u/" in path]
    lake.check()
    assert said(capsys, "dropped", folder)["dropped"] == []


def test_a_dropped_table_that_returns_during_grace_stays(lake: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    pointer = lake.pointers.get("u")
    assert pointer is not None
    lake.pointers.drop("u")
    folder = str(lake.folder / "lake")
    waiting = said(capsys, "dropped", folder, "--purge", f"{folder}/u", "--yes", "--grace", "1s")
    lake.pointers.register("back", pointer)
    time.sleep(1.1)
    problem = said(capsys, "purge", waiting["run"], code=14)["error"]
    assert "is back as" in problem["message"]
    lake.check()


def test_what_a_dropped_table_shares_with_a_living_one_stays(lake: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    shared = [lake.ledger.items[path] for path in lake.ledger.truths[max(lake.ledger.truths)].data]
    lake.writers["t"].commit("append", shared)
    lake.pointers.drop("u")
    lake.age(lake.folder / "lake")
    folder = str(lake.folder / "lake")
    done = said(capsys, "dropped", folder, "--purge", f"{folder}/u", "--yes", "--grace", "0s")
    assert done["classes"]["another-table"]["files"] >= len(shared)
    lake.check()
