"""Names that do not survive being written as plain text: their tables are tables, and nothing of them is garbage."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from firnline.cli.main import run
from firnline.errors import NoSuchTable, RefusedForSafety, UsageError
from firnline.lake import Lake, open_lake
from harness.crowds import Crowd
from harness.pointers import Pointers

CONFIG = "catalog:\n  lake:\n    type: sql\n    uri: {uri}\n    warehouse: {warehouse}\n"
ODD = {
    "a dot": ("lake", "db", "a.b"),
    "no namespace": ("lake", "", "t"),
    "no namespace, and a dot": ("lake", "", "db.known"),
    "a slash": ("lake", "db", "a/b"),
    "quotes": ("lake", "db", "a\"b'c`d"),
    "an at": ("lake", "db", "t@20260101T000000Z-abcdef"),
    "levels": ("lake", "eu.west.1", "t"),
    "an empty level": ("lake", "eu..west", "t"),
    "a blank": ("lake", "d b", " "),
    "another catalog's row": ("other", "db", "t"),
    "a row that differs in case": ("LAKE", "db", "t"),
}


@pytest.fixture
def lake(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """The lake as the command line opens it, with one table `lake.db.known`."""
    monkeypatch.setenv("PYICEBERG_HOME", str(crowd.folder))
    monkeypatch.setenv("HOME", str(crowd.folder))
    monkeypatch.chdir(crowd.folder)
    crowd.table("known")
    text = CONFIG.format(uri=crowd.pointers.uri, warehouse=crowd.lake)
    (crowd.folder / ".pyiceberg.yaml").write_text(text)
    return open_lake(engine="local")


def add(crowd: Crowd, catalog: str, namespace: str, name: str, folder: str = "live") -> set[str]:
    """Returns the files of a new table that has this name in the catalog's database."""
    pointers = Pointers(crowd.pointers.path, catalog, namespace)
    known, crowd.pointers = crowd.pointers, pointers
    crowd.table(name, inside=folder)
    crowd.pointers = known
    return {each for each in crowd.files() if each.startswith(f"{crowd.lake}/{folder}/")}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_a_live_table_is_not_dropped_whatever_its_name(lake: Lake, crowd: Crowd, odd: tuple[str, str, str]) -> None:
    files = add(crowd, *odd)
    assert lake.dropped(crowd.lake) == []
    with pytest.raises(UsageError, match="no dropped table"):
        lake.purge_dropped(crowd.lake, f"{crowd.lake}/live", grace="0s", consent=lambda plan: True)
    assert files <= crowd.files()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_a_neighbour_keeps_its_files_whatever_its_name(lake: Lake, crowd: Crowd, odd: tuple[str, str, str]) -> None:
    files = add(crowd, *odd)
    crowd.table("wide", properties={"write.data.path": f"{crowd.lake}/live/data"})
    stray = crowd.stray("live/data/left.parquet")
    _, found = lake.orphans("lake.db.wide", include_outside=True, grace="0s", consent=lambda plan: True)
    assert found is not None
    assert files <= crowd.files()
    assert stray not in crowd.files()


@pytest.mark.parametrize("odd", [each for each in ODD.values() if each[0] == "lake"])
def test_a_run_finds_its_table_by_its_own_name(lake: Lake, crowd: Crowd, odd: tuple[str, str, str]) -> None:
    add(crowd, *odd)
    (name,) = (each for each in lake.tables() if each.name == odd[2])
    assert lake.places.catalogs.name_of(str(name)) == name
    assert lake.plan(name, retain_last=1, older_than=crowd.clock() + 1, save=True).plan.run
    (planned,) = lake.runs(name)
    called = planned.id
    assert lake.run(called).id == called
    assert lake.commit(called).state == "committed"
    assert [each.id for each in lake.runs(str(name))] == [called]
    assert lake.undo(called).state == "undone"
    assert lake.runs("lake.db.known") == []


def test_commands_over_all_tables_reach_every_name(
    lake: Lake, crowd: Crowd, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, name in enumerate((("db", "a.b"), ("", "bare"), ("db", "a/b"))):
        add(crowd, "lake", *name, folder=f"t{number}")
    planned = {
        lake.plan(each, retain_last=1, older_than=crowd.clock() + 1, save=True).plan.run for each in lake.tables()
    }
    capsys.readouterr()
    for command in ("runs", "resume"):
        assert run([command, "--json"]) == 0
        said = json.loads(capsys.readouterr().out)["runs"]
        assert {each["run"] for each in said} == planned


def test_a_text_is_read_by_what_the_catalog_lists(lake: Lake, crowd: Crowd) -> None:
    for number, name in enumerate((("db", "a.b"), ("", "bare"), ("x", "y.z"), ("", "x.y.z"))):
        add(crowd, "lake", *name, folder=f"t{number}")
    assert str(lake.places.catalogs.name_of("lake.db.a.b")) == 'lake.db."a.b"'
    assert str(lake.places.catalogs.name_of("db.a.b")) == 'lake.db."a.b"'
    assert str(lake.places.catalogs.name_of("lake.bare")) == 'lake."".bare'
    assert str(lake.places.catalogs.name_of("bare")) == 'lake."".bare'
    assert str(lake.places.catalogs.name_of("db.known")) == "lake.db.known"
    with pytest.raises(UsageError, match="several tables") as unclear:
        lake.places.catalogs.name_of("lake.x.y.z")
    assert 'lake.x."y.z"' in unclear.value.hint
    assert 'lake.""."x.y.z"' in unclear.value.hint
    with pytest.raises(NoSuchTable, match="nothing"):
        lake.places.catalogs.name_of("lake.db.nothing")
    with pytest.raises(UsageError, match="not closed"):
        lake.places.catalogs.name_of('lake."db.known')


def test_a_table_of_another_catalog_in_the_database_that_cannot_be_read_stops(lake: Lake, crowd: Crowd) -> None:
    Pointers(crowd.pointers.path, "other").register("t", f"{crowd.lake}/nowhere/metadata/v1.metadata.json")
    stray = crowd.stray("known/data/left.parquet")
    with pytest.raises(RefusedForSafety, match="nowhere"):
        lake.orphans("lake.db.known", grace="0s", consent=lambda plan: True)
    with pytest.raises(RefusedForSafety, match="nowhere"):
        lake.dropped(crowd.lake)
    assert stray in crowd.files()


def test_two_configured_catalogs_of_one_database_are_counted_once(
    lake: Lake, crowd: Crowd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(crowd, "other", "db", "t")
    assert [str(each) for each in lake.places.catalogs.everyone()] == ["lake.db.known", "lake:other.db.t"]
    os.symlink(crowd.pointers.path, tmp_path / "link.db")
    for name, path in (("LAKE", crowd.pointers.path), ("OTHER", tmp_path / "link.db")):
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{name}__URI", f"sqlite:///{path}")
    assert [str(each) for each in open_lake().places.catalogs.everyone()] == ["lake.db.known", "other.db.t"]
