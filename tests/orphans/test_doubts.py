"""Doubts that stop a search or spare a file: what looks like nobody's and is somebody's by another name or word."""

from __future__ import annotations

import json
import os
import shutil
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firnline.errors import CollectionForbidden, NoSuchTable, RefusedForSafety, UnreadableMetadata
from firnline.model.times import HOUR_MS
from firnline.ops.orphans.guard import LakeGuard
from firnline.ops.runs.guard import ListedFile, reachable_since_search
from firnline.ports.listings import ObjectClass
from harness.crowds import Crowd
from harness.disks import local
from harness.forgery import without_grace
from harness.writers import Writer
from tests.orphans.conftest import Purge


def named_as(crowd: Crowd, writer: Writer, spelled: str, path: Path) -> None:
    """Commits a data file that lies at `path` under the name `spelled`."""
    item = writer.data_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    os.rename(local(item.path), path)
    crowd.ledger.contents[spelled] = crowd.ledger.contents[item.path]
    crowd.ledger.items[spelled] = replace(item, path=spelled)
    writer.commit("append", [crowd.ledger.items[spelled]])
    crowd.age(crowd.folder / "lake")


# ---------------------------------------------------------------- one place under two names


@pytest.mark.parametrize("same", [("file://", "hdfs://namenode"), ("hdfs://namenode", "file://")])
def test_two_places_that_are_one_are_one_in_either_order(crowd: Crowd, purge: Purge, same: tuple[str, str]) -> None:
    writer = crowd.table("t")
    place = crowd.folder / "lake/t/data/elsewhere.parquet"
    named_as(crowd, writer, f"hdfs://namenode{place}", place)
    plan, _ = purge("t", same=(same,))
    assert place.exists()
    assert plan.classes[ObjectClass.NEEDED].files == plan.listed.files


def test_a_table_inside_that_is_named_through_a_link_stops_the_search(crowd: Crowd, purge: Purge) -> None:
    crowd.table("outer", inside="real")
    (crowd.folder / "lake/link").symlink_to(crowd.folder / "lake/real")
    crowd.table("inner", inside="link/data/inner")
    crowd.age(crowd.folder / "lake")
    with pytest.raises(RefusedForSafety, match="another place"):
        purge("outer")
    crowd.check()


def test_a_copy_of_a_table_in_its_data_folder_stops_the_search(crowd: Crowd, purge: Purge) -> None:
    crowd.table("t")
    shutil.copytree(crowd.folder / "lake/t", crowd.folder / "copy")
    shutil.move(crowd.folder / "copy", crowd.folder / "lake/t/data/copy")
    crowd.age(crowd.folder / "lake")
    before = crowd.files()
    with pytest.raises(RefusedForSafety, match="another place"):
        purge("t", blast_radius=1.0)
    assert crowd.files() == before


# ---------------------------------------------------------------- a catalog that fell behind


@pytest.mark.parametrize("commits", [1, 3])
def test_a_catalog_that_is_behind_another_one_stops_the_search(crowd: Crowd, purge: Purge, commits: int) -> None:
    """The table went on in a catalog that is not configured here; this one still has its old pointer."""
    writer = crowd.table("t")
    behind = crowd.pointers.get("t")
    assert behind is not None
    for _ in range(commits):
        writer.append(1)
    ahead = crowd.pointers.get("t")
    assert ahead is not None
    crowd.age(crowd.folder / "lake")
    assert crowd.pointers.swap("t", ahead, behind)
    with pytest.raises(RefusedForSafety, match="newer than") as refused:
        purge("t", blast_radius=1.0)
    assert "with also" in refused.value.hint
    purge("t", blast_radius=1.0, also=(ahead,))
    assert crowd.pointers.swap("t", behind, ahead)
    crowd.check()


@pytest.mark.parametrize("searched", ["t", "."])
def test_an_inventory_without_metadata_hides_no_table_that_went_on_elsewhere(
    crowd: Crowd, purge: Purge, tmp_path: Path, searched: str
) -> None:
    """An inventory may be of the data alone, or older than the metadata by which another catalog needs the data."""
    writer = crowd.table("t")
    behind = crowd.pointers.get("t")
    writer.append(1)
    ahead = crowd.pointers.get("t")
    assert behind is not None
    assert ahead is not None
    crowd.age(crowd.folder / "lake")
    assert crowd.pointers.swap("t", ahead, behind)
    rows = [
        f"{path},{local(path).stat().st_size},2020-01-01T00:00:00Z"
        for path in crowd.files()
        if "/metadata/" not in path
    ]
    inventory = tmp_path / "inventory.csv"
    inventory.write_text("\n".join(["path,size,modified", *rows]))
    before = crowd.files()
    with pytest.raises(RefusedForSafety, match="newer than"):
        purge("t" if searched == "t" else crowd.lake, blast_radius=1.0, inventory=inventory)
    assert crowd.files() == before


def test_a_commit_on_its_way_does_not_stop_the_search(crowd: Crowd, purge: Purge) -> None:
    writer = crowd.table("t")
    behind = crowd.pointers.get("t")
    stray = crowd.stray("t/data/left.parquet")
    writer.append(1)
    ahead = crowd.pointers.get("t")
    assert behind is not None
    assert ahead is not None
    assert crowd.pointers.swap("t", ahead, behind)
    purge("t")
    assert crowd.pointers.swap("t", behind, ahead)
    assert stray not in crowd.files()
    crowd.check()


def test_metadata_that_is_gone_by_now_does_not_stop_the_search(crowd: Crowd, purge: Purge, tmp_path: Path) -> None:
    """A writer that cleans up after itself, and an inventory of yesterday."""
    crowd.table("t")
    stray = crowd.stray("t/data/left.parquet")
    listed = [*crowd.files(), f"{crowd.lake}/t/metadata/00000-gone.metadata.json"]
    inventory = tmp_path / "inventory.csv"
    rows = (f"{path},8,2020-01-01T00:00:00Z" for path in listed)
    inventory.write_text("\n".join(["path,size,modified", *rows]))
    purge("t", inventory=inventory)
    assert stray not in crowd.files()
    crowd.check()


def test_metadata_that_is_gone_from_an_unknown_folder_stops_the_search(
    crowd: Crowd, purge: Purge, tmp_path: Path
) -> None:
    crowd.table("t")
    stray = crowd.stray("t/data/left.parquet")
    inventory = tmp_path / "inventory.csv"
    listed = [*crowd.files(), f"{crowd.lake}/t/data/who/metadata/00000-gone.metadata.json"]
    rows = (f"{path},8,2020-01-01T00:00:00Z" for path in listed)
    inventory.write_text("\n".join(["path,size,modified", *rows]))
    with pytest.raises(RefusedForSafety, match="nobody can tell whose"):
        purge("t", inventory=inventory)
    assert stray in crowd.files()


# ---------------------------------------------------------------- tables that are named by hand


def test_a_table_that_was_named_and_is_not_there_stops_the_search(crowd: Crowd, purge: Purge) -> None:
    crowd.table("t")
    stray = crowd.stray("t/data/left.parquet")
    with pytest.raises(NoSuchTable):
        purge("t", also=(f"{crowd.lake}/typo",))
    assert stray in crowd.files()


def test_a_table_that_was_named_by_a_relative_path_is_found_from_any_folder(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd.table("t")
    crowd.table("unknown", inside="t/data/unknown")
    pointer = crowd.pointers.get("unknown")
    assert pointer is not None
    crowd.pointers.drop("unknown")
    stray = crowd.stray("t/data/left.parquet")
    monkeypatch.chdir(crowd.folder)
    relative = os.path.relpath(local(pointer), crowd.folder)
    _, waiting = crowd.process().orphans(crowd.name("t"), grace="1h", also=(relative,), consent=lambda plan: True)
    monkeypatch.chdir("/")
    crowd.clock.advance(2 * HOUR_MS)
    crowd.later().purge(waiting.id)
    assert stray not in crowd.files()
    crowd.pointers.register("unknown", pointer)
    crowd.check()


# ---------------------------------------------------------------- holds


def test_a_hold_on_one_table_during_grace_spares_its_files_under_a_prefix(crowd: Crowd) -> None:
    crowd.table("held")
    crowd.table("free")
    kept, goes = crowd.stray("held/data/left.parquet"), crowd.stray("free/data/left.parquet")
    _, waiting = crowd.process().orphans(crowd.lake, grace="1h", consent=lambda plan: True)
    crowd.process().hold_add(crowd.name("held"), "legal")
    crowd.clock.advance(2 * HOUR_MS)
    crowd.later().purge(waiting.id)
    assert kept in crowd.files()
    assert goes not in crowd.files()


def test_a_table_that_forbids_removals_keeps_what_it_shares(crowd: Crowd, purge: Purge) -> None:
    crowd.table("held", inside="both", properties={"gc.enabled": "false"})
    crowd.table("free", inside="both")
    stray = crowd.stray("both/data/left.parquet")
    for searched in ("free", crowd.lake):
        plan, _ = purge(searched)
        assert plan.victims.all.files == 0
    assert stray in crowd.files()


def test_a_dropped_table_that_forbade_removals_stays(crowd: Crowd) -> None:
    crowd.table("t", properties={"gc.enabled": "false"})
    crowd.table("other")
    crowd.pointers.drop("t")
    before = crowd.files()
    with pytest.raises(CollectionForbidden):
        crowd.process().purge_dropped(crowd.lake, f"{crowd.lake}/t", grace="0s", consent=lambda plan: True)
    assert crowd.files() == before


def test_a_dropped_table_with_a_held_snapshot_stays(crowd: Crowd) -> None:
    writer = crowd.table("t")
    crowd.table("other")
    crowd.process().hold_add(crowd.name("t"), "case", writer.document()["snapshots"][0]["snapshot-id"])
    crowd.pointers.drop("t")
    crowd.age(crowd.folder / "lake")
    before = crowd.files()
    with pytest.raises(CollectionForbidden, match="the hold case") as refused:
        crowd.process().purge_dropped(crowd.lake, f"{crowd.lake}/t", grace="0s", consent=lambda plan: True)
    assert "register" in refused.value.hint
    assert crowd.files() == before


def test_the_newest_metadata_of_a_dropped_table_tells_of_its_holds_whatever_the_files_say(crowd: Crowd) -> None:
    """A copy of a folder may give all files one time, and then no time tells which metadata was the last."""
    writer = crowd.table("t")
    first = writer.document()["snapshots"][0]["snapshot-id"]
    crowd.table("other")
    crowd.process().hold_add(crowd.name("t"), "case", first)
    held = local(writer.place())
    crowd.pointers.drop("t")
    crowd.age(crowd.folder / "lake")
    crowd.set_age(held, 20)
    before = crowd.files()
    with pytest.raises(CollectionForbidden, match="the hold case"):
        crowd.process().purge_dropped(crowd.lake, f"{crowd.lake}/t", grace="0s", consent=lambda plan: True)
    assert crowd.files() == before


@pytest.mark.parametrize("held", [True, False])
def test_a_table_that_is_called_dropped_keeps_what_its_holds_keep(crowd: Crowd, purge: Purge, held: bool) -> None:
    crowd.table("known", inside="both")
    lost = crowd.table("lost", inside="both")
    uuid, snapshot = lost.document()["table-uuid"], lost.document()["snapshots"][0]["snapshot-id"]
    crowd.process().hold_add(crowd.name("lost"), "case", snapshot)
    if not held:
        crowd.process().hold_release(crowd.name("lost"), "case")
    crowd.pointers.drop("lost")
    crowd.age(crowd.folder / "lake")
    before = crowd.files()
    if held:
        with pytest.raises(CollectionForbidden, match="the hold case"):
            purge("known", dead=frozenset({uuid}))
        assert crowd.files() == before
    else:
        purge("known", dead=frozenset({uuid}))
        assert crowd.files() < before


def test_a_dropped_folder_whose_table_lived_elsewhere_is_not_purged_there(crowd: Crowd) -> None:
    crowd.table("t")
    crowd.table("other")
    crowd.pointers.drop("t")
    shutil.move(crowd.folder / "lake/t", crowd.folder / "lake/moved")
    crowd.table("t", commits=1)
    crowd.age(crowd.folder / "lake")
    theirs = crowd.stray("t/data/left.parquet")
    with pytest.raises(RefusedForSafety, match="lived at"):
        crowd.process().purge_dropped(crowd.lake, f"{crowd.lake}/moved", grace="0s", consent=lambda plan: True)
    assert theirs in crowd.files()
    crowd.check()


def test_a_table_inside_a_dropped_one_keeps_its_own_garbage(crowd: Crowd) -> None:
    crowd.table("old")
    crowd.table("inner", inside="old/data/inner")
    crowd.pointers.drop("old")
    theirs, mine = crowd.stray("old/data/inner/data/left.parquet"), crowd.stray("old/data/left.parquet")
    crowd.process().purge_dropped(crowd.lake, f"{crowd.lake}/old", grace="0s", consent=lambda plan: True)
    assert theirs in crowd.files()
    assert mine not in crowd.files()
    crowd.check()


# ---------------------------------------------------------------- between the list and the delete


def test_a_file_taken_up_during_grace_under_another_encoding_is_spared(crowd: Crowd) -> None:
    writer = crowd.table("t")
    stray = crowd.stray("t/data/a b.parquet")
    _, waiting = crowd.process().orphans(crowd.name("t"), grace="1h", consent=lambda plan: True)
    item = writer.data_file()
    encoded = stray.replace(" ", "%20")
    crowd.ledger.contents[encoded] = crowd.ledger.contents[item.path]
    writer.commit("append", [replace(item, path=encoded)])
    crowd.clock.advance(2 * HOUR_MS)
    crowd.later().purge(waiting.id)
    assert stray in crowd.files()


def waiting_with_two_names(crowd: Crowd, *, inside: str = "t") -> tuple[str, str, str]:
    """Returns a stray file that a waiting search lists, what it is called in the other name of its place, and the run:
    as where a bucket is mounted, and tables name it by its address.
    """
    there = f"hdfs://namenode/warehouse/{inside}"
    stray = crowd.stray(f"{inside}/data/left.parquet")
    same = ((f"{crowd.lake}/{inside}", there),)
    _, waiting = crowd.process().orphans(crowd.name("t"), grace="1h", same=same, consent=lambda plan: True)
    assert waiting is not None
    return stray, f"{there}/data/left.parquet", waiting.id


def test_a_file_taken_up_during_grace_by_the_other_name_of_its_place_is_spared(crowd: Crowd) -> None:
    writer = crowd.table("t")
    stray, elsewhere, run = waiting_with_two_names(crowd)
    item = writer.data_file()
    crowd.ledger.contents[elsewhere] = crowd.ledger.contents[item.path]
    writer.commit("append", [replace(item, path=elsewhere)])
    crowd.clock.advance(2 * HOUR_MS)
    crowd.later().purge(run)
    assert stray in crowd.files()


def test_a_table_that_forbids_removals_during_grace_by_the_other_name_of_its_folder_keeps_it(crowd: Crowd) -> None:
    crowd.table("t", inside="both")
    stray, elsewhere, run = waiting_with_two_names(crowd, inside="both")
    folder = elsewhere.rpartition("/")[0]
    crowd.table("held", properties={"gc.enabled": "false", "write.data.path": folder})
    crowd.clock.advance(2 * HOUR_MS)
    crowd.later().purge(run)
    assert stray in crowd.files()


def without_also(plan: dict[str, Any]) -> None:
    plan["scope"].update(also=[])


def without_catalogs(plan: dict[str, Any]) -> None:
    plan.update(catalogs=[])


@pytest.mark.parametrize("edit", [without_also, without_catalogs, without_grace])
def test_a_plan_that_was_edited_is_not_carried_out(crowd: Crowd, edit: Callable[[dict[str, Any]], None]) -> None:
    crowd.table("t")
    stray = crowd.stray("t/data/left.parquet")
    _, waiting = crowd.process().orphans(crowd.name("t"), grace="1h", consent=lambda plan: True)
    record = next((crowd.folder / "lake/t/_firnline").rglob("plan.json"))
    plan = json.loads(record.read_bytes())
    edit(plan)
    record.write_text(json.dumps(plan))
    crowd.clock.advance(2 * HOUR_MS)
    with pytest.raises(UnreadableMetadata, match="not as it was written"):
        crowd.later().purge(waiting.id)
    assert stray in crowd.files()
    crowd.later().undo(waiting.id)


def test_the_same_bytes_written_again_are_young_whatever_their_tag(crowd: Crowd) -> None:
    """On object stores a tag is often the digest of the bytes: who repeats a write leaves the tag of the old one."""
    crowd.table("t")
    stray = crowd.stray("t/data/left.parquet")
    _, waiting = crowd.process().orphans(crowd.name("t"), grace="1h", consent=lambda plan: True)
    process = crowd.process()
    work = process.places.table_context(crowd.name("t"))
    guard = LakeGuard(work, waiting.run, waiting.run.plan, reachable_since_search(work, waiting.run))
    guard.look_again()
    listed = work.store.head(stray)
    line = ListedFile(stray, "data", listed.size, listed.modified_ms, listed.etag)
    assert guard.reasons_to_spare([line]) == {}
    crowd.set_age(local(stray), 0.1)
    assert guard.reasons_to_spare([line._replace(etag=work.store.head(stray).etag)]).keys() == {stray}


def test_names_that_differ_by_how_letters_are_composed_stop_the_search(crowd: Crowd, purge: Purge) -> None:
    writer = crowd.table("t")
    composed, apart = (unicodedata.normalize(form, "caf\u00e9.parquet") for form in ("NFC", "NFD"))
    place = crowd.folder / "lake/t/data" / apart
    named_as(crowd, writer, f"{crowd.lake}/t/data/{composed}", place)
    with pytest.raises(RefusedForSafety, match="differ only"):
        purge("t")
    assert place.exists()
