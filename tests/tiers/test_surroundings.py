"""What lies around a table and its tier, and what moves meanwhile: nothing is mixed, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog

from firnline.app.places import now_ms
from firnline.errors import ArchiveIncomplete, FirnlineError, RefusedForSafety
from firnline.ops.tiers.handing import Handing
from firnline.ports.catalogs import always
from tests.neighbours.lakes import rows
from tests.tiers.cutting import Before, passing_through
from tests.tiers.lakes import TieredLake, forget_catalogs, tiered_lake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TieredLake]:
    with tiered_lake(tmp_path, monkeypatch) as made:
        yield made


def _filled(lake: TieredLake, name: str = "t", *numbers: int) -> dict[int, list[int]]:
    """Makes a table of a few snapshots, and returns their rows."""
    lake.create(name)
    for number in numbers or (1, 2):
        lake.append(name, number)
    lake.overwrite(name, 7, 8)
    return lake.rows_by_snapshot(name)


def _check(lake: TieredLake, name: str, before: dict[int, list[int]]) -> None:
    """All but the live snapshots are in the tier, as they were."""
    live = lake.rows_by_snapshot(name)
    assert lake.cold_rows(name) == {each: read for each, read in before.items() if each not in live}


def _files(folder: Path) -> dict[Path, bytes]:
    return {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def _planned(lake: TieredLake) -> str:
    view = lake.firnline().plan("lake.db.t", save=True, older_than=now_ms(), retain_last=1, grace="0s")
    return str(view.plan.run)


def test_all_that_was_to_be_handed_over_is_gone(lake: TieredLake) -> None:
    """Another engine expires everything between the plan and the commit."""
    before = _filled(lake)
    run = _planned(lake)
    table = lake.table("t")
    others = [each for each in before if each != table.metadata.current_snapshot_id]
    table.maintenance.expire_snapshots().by_ids(others).commit()
    assert lake.firnline().commit(run).state == "cancelled"


def test_a_missing_source_stops_it(lake: TieredLake) -> None:
    before = _filled(lake)
    (task,) = lake.table("t").scan(snapshot_id=_by_age(lake)[0]).plan_files()
    Path(task.file.file_path.removeprefix("file://")).unlink()
    location = lake.table("t").metadata_location
    with pytest.raises(ArchiveIncomplete):
        lake.expire("t")
    assert lake.table("t").metadata_location == location
    assert len(lake.table("t").snapshots()) == len(before)


def _by_age(lake: TieredLake) -> list[int]:
    return [each.snapshot_id for each in sorted(lake.table("t").snapshots(), key=lambda each: each.timestamp_ms)]


@pytest.mark.full
def test_undone_and_expired_again(lake: TieredLake) -> None:
    before = _filled(lake)
    run = lake.expire("t", grace="1h").id
    cold = lake.cold_table("t").metadata_location
    assert lake.firnline().undo(str(run)).state == "undone"
    assert lake.rows_by_snapshot("t") == before
    assert lake.expire("t").state == "done"
    assert lake.cold_table("t").metadata_location == cold
    _check(lake, "t", before)


def test_a_table_that_was_made_again(lake: TieredLake) -> None:
    """Its history is another one: neither mixed with the old, nor thrown away; and it can be looked at."""
    old = _filled(lake)
    lake.expire("t")
    kept = _files(lake.cold_root)
    live = lake.rows_by_snapshot("t")
    lake.catalog.drop_table("db.t")
    before = _filled(lake)
    with pytest.raises(RefusedForSafety):
        lake.expire("t")
    assert lake.rows_by_snapshot("t") == before
    assert _files(lake.cold_root) == kept
    assert lake.cold_rows("t") == {each: read for each, read in old.items() if each not in live}
    assert {each.tiers for each in lake.firnline().tiers("lake.db.t").snapshots} == {("live",)}


def test_two_catalogs_that_share_a_tier(lake: TieredLake) -> None:
    before = _filled(lake)
    settings = {"type": "sql", "uri": f"sqlite:///{lake.folder}/other.db", "warehouse": f"file://{lake.folder}/second"}
    configured = yaml.safe_load((lake.folder / ".pyiceberg.yaml").read_text())
    configured["catalog"]["other"] = settings
    (lake.folder / ".pyiceberg.yaml").write_text(yaml.safe_dump(configured))
    other = SqlCatalog("other", **settings)
    other.create_namespace("db")
    second = other.create_table("db.t", pa.schema([("x", pa.int64())]))
    for number in (3, 4):
        second.append(rows(number))
    lake.expire("t")
    with pytest.raises(RefusedForSafety):
        lake.firnline().expire("other.db.t", older_than=now_ms(), retain_last=1, grace="0s")
    assert len(other.load_table("db.t").snapshots()) == 2
    assert {each.tiers for each in lake.firnline().tiers("other.db.t").snapshots} == {("live",)}
    _check(lake, "t", before)
    other.close()


def test_a_table_that_was_renamed(lake: TieredLake) -> None:
    """What it handed over under its old name is still its history."""
    before = _filled(lake)
    lake.expire("t")
    lake.catalog.rename_table("db.t", "db.new")
    lake.overwrite("new", 9)
    before |= lake.rows_by_snapshot("new")
    lake.expire("new")
    live = lake.rows_by_snapshot("new")
    found: dict[int, list[int]] = {}
    for _, name in lake.cold.list_tables("db"):
        found |= lake.cold_rows(name)
    assert {**found, **live} == before
    said = {each.id: each.tiers for each in lake.firnline().tiers("lake.db.new").snapshots}
    assert said == {str(each): ("live",) if each in live else ("cold",) for each in before}


def test_a_clone_and_its_original(lake: TieredLake) -> None:
    before = _filled(lake)
    lake.clone("t", "copy")
    lake.expire("t")
    lake.append("copy", 5)
    copied = lake.rows_by_snapshot("copy")
    lake.expire("copy")
    _check(lake, "t", before)
    _check(lake, "copy", copied)


def test_files_from_elsewhere(lake: TieredLake) -> None:
    """Imported files lie outside the table's folders, under names that mean something in a URI."""
    table = lake.create("t")
    outside = lake.folder / "in bound" / "ä%20+b"
    outside.mkdir(parents=True)
    for number in (1, 2):
        pq.write_table(rows(number), outside / f"part {number}.parquet")
        table.add_files([str(outside / f"part {number}.parquet")])
        table = lake.table("t")
    lake.overwrite("t", 7)
    before = lake.rows_by_snapshot("t")
    assert lake.expire("t").state == "done"
    _check(lake, "t", before)


def test_tags_and_holds_that_come_meanwhile_stay(lake: TieredLake, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _filled(lake)
    first, second, *_ = _by_age(lake)

    def mark() -> None:
        firnline = lake.firnline()
        firnline.tag("lake.db.t", "v1", str(first), retain="forever")
        firnline.hold("lake.db.t", "audit", str(second), why="a case", until=None)

    marking = Before("put_if_absent", "/colder/", mark)
    with passing_through(marking, lake.folder, monkeypatch):
        lake.expire("t")
    assert marking.acted
    live = lake.rows_by_snapshot("t")
    assert {first, second} <= live.keys()
    assert {**lake.cold_rows("t"), **live} == before


def test_a_lease_that_is_broken_in_the_middle(lake: TieredLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process takes the run over and finishes it; the first one changes nothing any more."""
    before = _filled(lake)

    def take_over() -> None:
        resumed = lake.firnline().resume("lake.db.t", break_lease=True)
        assert [each.state for each in resumed] == ["done"]

    taking = Before("put_if_absent", "/colder/", take_over)
    with passing_through(taking, lake.folder, monkeypatch), pytest.raises(FirnlineError):
        lake.expire("t")
    assert taking.acted
    _check(lake, "t", before)
    assert [each.state for each in lake.firnline().runs("lake.db.t")] == ["done"]


def test_another_hands_over_at_once(lake: TieredLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two that place the tier's table, the second adds to what the first one wrote."""
    before = _filled(lake)
    first, *_ = _by_age(lake)
    placing = Before("commit", "cold.db", lambda: _hand(lake, {str(first)}))
    with passing_through(placing, lake.folder, monkeypatch):
        lake.expire("t")
    assert placing.acted
    _check(lake, "t", before)


def _hand(lake: TieredLake, snapshots: set[str]) -> None:
    """Hands over without a lease, as a second registration of the table does whose records lie elsewhere."""
    work = lake.firnline().places.table_context("lake.db.t")
    state = work.source.load()
    tier = work.open_tier(work.source.name, "cold", state.uuid)
    Handing(work, state, tier, always).hand_over(snapshots, set())


def test_a_tag_name_that_the_tier_has_already(lake: TieredLake) -> None:
    """A name that is used again gets its snapshot's id in the tier, also where that snapshot is there already."""
    before = _filled(lake)
    first, second, *_ = _by_age(lake)
    lake.table("t").manage_snapshots().create_tag(first, "v1", max_ref_age_ms=1).commit()
    firnline = lake.firnline()
    firnline.archive("lake.db.t", older_than=now_ms(), retain_last=1)
    assert lake.cold_table("t").refs()["v1"].snapshot_id == first
    lake.table("t").manage_snapshots().remove_tag("v1").commit()
    lake.table("t").manage_snapshots().create_tag(second, "v1", max_ref_age_ms=1).commit()
    lake.expire("t")
    refs = {name: ref.snapshot_id for name, ref in lake.cold_table("t").refs().items() if name != "main"}
    assert refs == {"v1": first, f"v1-{second}": second}
    _check(lake, "t", before)


@pytest.mark.parametrize("where", ["inside", "around", "link inside", "link around"])
def test_a_tier_in_the_table_or_around_it(lake: TieredLake, where: str) -> None:
    before = _filled(lake)
    folder = lake.folder / "warehouse" / "db" / "t"
    place = {"inside": folder / "cold", "around": lake.folder}.get(where, lake.folder / "link")
    if where.startswith("link"):
        (folder / "sub").mkdir()
        place.symlink_to(folder / "sub" if where == "link inside" else lake.folder / "warehouse")
    lake.policy = lake.policy.replace(f"{lake.folder}/colder", str(place))
    with pytest.raises(RefusedForSafety):
        lake.expire("t")
    assert lake.rows_by_snapshot("t") == before


def _search(lake: TieredLake, where: str) -> None:
    """Removes what no table needs there, unless that is refused. All files are two years old."""
    for each in (lake.folder / "warehouse").rglob("*"):
        if each.is_file():
            os.utime(each, (1_700_000_000, 1_700_000_000))
    with suppress(FirnlineError):
        lake.firnline().orphans(where, grace="0s", older_than=now_ms() - 25 * 3_600_000)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("catalog", ["there", "away"])
def test_orphans_never_take_what_is_cold(lake: TieredLake, catalog: str) -> None:
    """The tier lies in the folder of another table; its catalog may even be a file that is not mounted now."""
    lake.create("outer")
    lake.append("outer", 1)
    root = lake.folder / "warehouse" / "db" / "outer" / "data" / "cold"
    lake.policy = lake.policy.replace(f"{lake.folder}/colder", str(root))
    _filled(lake)
    lake.expire("t")
    kept = _files(root)
    assert kept
    if catalog == "away":
        forget_catalogs()
        (lake.folder / "cold.db").rename(lake.folder / "away.db")
    for where in ("lake.db.outer", "cold.db.t", "lake.db.t", str(lake.folder / "warehouse")):
        _search(lake, where)
        assert _files(root) == kept, where


def test_two_registrations_of_one_table(lake: TieredLake) -> None:
    """Nothing leaves a table that is registered twice. Both have one history, in one table of the tier."""
    before = _filled(lake)
    lake.catalog.register_table("db.same", lake.table("t").metadata_location)
    for name in ("t", "same"):
        with pytest.raises(RefusedForSafety):
            lake.expire(name)
        lake.firnline().archive(f"lake.db.{name}", older_than=now_ms(), retain_last=1)
        assert lake.rows_by_snapshot(name) == before
    assert lake.cold.list_tables("db") == [("db", "t")]
    assert lake.cold_rows("t").items() <= before.items()
    assert len(lake.cold_rows("t")) == len(before) - 1


def test_a_history_stays_one_table_when_its_tier_gets_another_root(lake: TieredLake) -> None:
    """What is there stays readable where it lies, and what comes goes to the new root: under one uuid."""
    before = _filled(lake)
    lake.expire("t")
    uuid = lake.cold_table("t").metadata.table_uuid
    lake.policy = lake.policy.replace("/colder", "/coldest")
    lake.append("t", 11)
    lake.overwrite("t", 12)
    before |= lake.rows_by_snapshot("t")
    assert lake.expire("t").state == "done"
    assert lake.cold_table("t").metadata.table_uuid == uuid
    _check(lake, "t", before)


def test_brought_back_and_expired_again(lake: TieredLake) -> None:
    """What came back from the tier goes again: the tier has it already, and does not change."""
    before = _filled(lake)
    first, *_ = _by_age(lake)
    lake.expire("t")
    kept = _files(lake.cold_root)
    lake.firnline().restore("lake.db.t", str(first), tag="back")
    assert lake.rows_by_snapshot("t")[first] == before[first]
    lake.table("t").manage_snapshots().remove_tag("back").commit()
    assert lake.expire("t").state == "done"
    assert first not in lake.rows_by_snapshot("t")
    assert _files(lake.cold_root) == kept
    _check(lake, "t", before)


def test_brought_back_while_it_is_purged(lake: TieredLake) -> None:
    """A snapshot that is restored before its run is purged keeps its files, live and cold."""
    before = _filled(lake)
    first, *_ = _by_age(lake)
    run = _planned(lake)
    assert lake.firnline().commit(run).state == "committed"
    lake.firnline().restore("lake.db.t", str(first), tag="back")
    assert lake.firnline().purge(run).state == "done"
    assert lake.rows_by_snapshot("t")[first] == before[first]
    cold = lake.cold_rows("t")
    assert cold == {each: before[each] for each in cold}
    assert first in cold
