"""A run belongs to the table that it was planned on: not to another registration of it, nor to a copied folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog

from firnline.app.places import now_ms
from firnline.catalogs.config import CatalogSettings
from firnline.errors import RefusedForSafety, TableMoved
from firnline.journal.runs import Run
from firnline.lake import Lake, open_lake
from firnline.model.holds import Hold
from firnline.ops.marks.holds import add_hold
from firnline.testing.dated import Clock, dated
from firnline.testing.manifests import AvroLayout
from firnline.testing.tables import QuickFiles, SmallTable
from tests.neighbours.lakes import RealLake

ACTS = (Lake.purge, Lake.undo, Lake.advance, Lake.commit)


def a_run_with_a_held_snapshot(lake: RealLake) -> tuple[str, str]:
    """Returns a run that took the first snapshot of `a` out, and that snapshot, which is held since."""
    lake.create("a")
    lake.append("a", 1, 2)
    first = str(lake.table("a").current_snapshot().snapshot_id)
    lake.overwrite("a", 3)
    run = lake.expire("a", grace="1s").run
    add_hold(lake.firnline().places.table_context("lake.db.a"), Hold("audit", "a person", "a case", first, None))
    return str(run.id), first


def a_run_and_a_second_registration(lake: RealLake) -> tuple[Run, str, list[str]]:
    """Returns a run on `a`, the snapshot that it took out and its data files; `second` came after its commit."""
    lake.create("a")
    lake.append("a", 1, 2)
    first = str(lake.table("a").current_snapshot().snapshot_id)
    files = lake.data_files("a")
    lake.overwrite("a", 3)
    run = lake.expire("a", grace="1s").run
    lake.catalog.register_table("db.second", lake.table("a").metadata_location)
    return run, first, files


def later(lake: RealLake) -> Lake:
    return dated(lake.firnline(), Clock(2_000))


def test_a_second_registration_does_not_carry_on_the_runs_of_the_first(lake: RealLake) -> None:
    """The hold is on the first one alone: the second's metadata is older than the hold."""
    run, first, files = a_run_and_a_second_registration(lake)
    add_hold(lake.firnline().places.table_context("lake.db.a"), Hold("audit", "a person", "a case", first, None))
    assert lake.firnline().runs("lake.db.second") == []
    for policy in ("", "shared-with: ['lake.db.*']"):
        lake.policy = policy
        for act in ACTS:
            with pytest.raises(TableMoved, match=r"lake\.db\.a"):
                act(later(lake), f"lake.db.second@{run.id.stamp}")
        assert later(lake).purge_table("lake.db.second") == []
    assert all(Path(each.removeprefix("file://")).exists() for each in files)


def test_what_the_other_registration_holds_counts_where_both_are_named(lake: RealLake) -> None:
    run, first, files = a_run_and_a_second_registration(lake)
    lake.policy = "shared-with: ['lake.db.*']"
    add_hold(lake.firnline().places.table_context("lake.db.second"), Hold("audit", "a person", "a case", first, None))
    done = later(lake).purge(str(run.id))
    assert done.state == "done"
    assert all(Path(each.removeprefix("file://")).exists() for each in files)
    add_hold(lake.firnline().places.table_context("lake.db.second"), Hold("freeze", "a person", "a case", None, None))
    lake.overwrite("a", 4)
    with pytest.raises(RefusedForSafety, match=r"lake\.db\.second"):
        lake.expire("a")


def test_a_run_goes_on_under_the_new_name_of_a_renamed_table(lake: RealLake) -> None:
    run, _ = a_run_with_a_held_snapshot(lake)
    lake.catalog.rename_table("db.a", "db.renamed")
    done = later(lake).purge(f"lake.db.renamed@{run.rpartition('@')[2]}")
    assert done.state == "done"
    assert lake.read("renamed") == [3]


@contextmanager
def a_catalog_of_another_machine(lake: RealLake) -> Iterator[SqlCatalog]:
    """Makes another catalog, where `a` is registered as it is now. From then on it is the only one configured."""
    settings = {**lake.catalog.properties, "uri": f"sqlite:///{lake.folder}/there.db"}
    catalog = SqlCatalog("there", **settings)
    catalog.create_namespace("db")
    catalog.register_table("db.a", lake.table("a").metadata_location)
    configure(lake, there=settings)
    yield catalog
    catalog.close()


def configure(here: RealLake, **catalogs: Mapping[str, str]) -> None:
    said = {name: {"type": "sql", **each} for name, each in catalogs.items()}
    (here.folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": said}))


@pytest.mark.parametrize("verb", ["purge", "resume"])
def test_a_machine_that_does_not_know_the_catalog_of_a_run_does_not_carry_it_on(lake: RealLake, verb: str) -> None:
    """The hold is in the first catalog alone; the records lie in the folder that both have."""
    lake.create("a")
    lake.append("a", 1, 2)
    first, files = str(lake.table("a").current_snapshot().snapshot_id), lake.data_files("a")
    lake.overwrite("a", 3)
    run = lake.expire("a", grace="1s").run
    hold = Hold("audit", "a person", "a case", first, None)
    work = lake.firnline().places.table_context("lake.db.a")
    with a_catalog_of_another_machine(lake):
        add_hold(work, hold)
        assert [(each.value, each.problem) for each in getattr(later(lake).several(), verb)()] == [([], None)]
        with pytest.raises(TableMoved, match=r"lake\.db\.a"):
            later(lake).purge(f"there.db.a@{run.id.stamp}")
    assert all(Path(each.removeprefix("file://")).exists() for each in files)


def test_a_run_goes_on_in_the_catalog_that_the_table_moved_to(lake: RealLake) -> None:
    run, _ = a_run_with_a_held_snapshot(lake)
    with a_catalog_of_another_machine(lake) as there:
        configure(lake, lake=lake.catalog.properties, there=there.properties)
        lake.catalog.drop_table("db.a")
        done = later(lake).purge(f"there.db.a@{run.rpartition('@')[2]}")
    assert done.state == "done"


def test_a_run_goes_on_where_its_catalog_is_called_otherwise(lake: RealLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server's address stays the same, whatever the catalog is called: here two databases stand for it."""
    monkeypatch.setattr(CatalogSettings, "address", "one server")
    run, _ = a_run_with_a_held_snapshot(lake)
    with a_catalog_of_another_machine(lake):
        assert later(lake).purge(f"there.db.a@{run.rpartition('@')[2]}").state == "done"


def path_table(folder: Path) -> SmallTable:
    """Returns a path table with a history: its name is its folder."""
    table = SmallTable(QuickFiles(), f"file://{folder}", AvroLayout(2))
    table.append(2)
    table.overwrite(table.live())
    table.publish()
    return table


def test_a_copied_folder_is_not_worked_on_as_the_original(tmp_path: Path) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    path_table(original)
    shutil.copytree(original, tmp_path / "copy before")
    lake = open_lake(engine="local")
    run = lake.expire(str(original), older_than=now_ms() + 10**9, retain_last=1, grace="1h").run
    shutil.copytree(original, copy)
    for act in ACTS:
        with pytest.raises(TableMoved, match="original"):
            act(lake, f"{copy}@{run.id.stamp}")
    with pytest.raises(RefusedForSafety, match="is a copy"):
        lake.expire(str(tmp_path / "copy before"), older_than=now_ms() + 10**9, retain_last=1, grace="0s")
    with pytest.raises(RefusedForSafety, match="is a copy"):
        lake.orphans(str(copy))
    assert lake.undo(str(run.id)).state == "undone"
