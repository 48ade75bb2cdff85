"""Every way in which a peer's orphan removal is known to have lost live data, tried on a real lake.

Each group names the cause: shared folders, spellings, kinds, ages and clocks, unreadable roots, runs of our own.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from firnline.errors import CollectionForbidden, NoSuchTable, RefusedForSafety, StoreError, UnreadableMetadata
from firnline.model.times import DAY_MS, HOUR_MS, MINUTE_MS
from firnline.ports.listings import ObjectClass
from harness.crowds import Crowd
from harness.disks import local
from tests.orphans.conftest import Purge


def gone(crowd: Crowd, *paths: str) -> bool:
    return not set(paths) & crowd.files()


# ---------------------------------------------------------------- tables that share a folder


def test_two_tables_in_one_folder_keep_what_either_needs(crowd: Crowd, purge: Purge) -> None:
    crowd.table("one", inside="both")
    crowd.table("two", inside="both")
    stray = crowd.stray("both/data/left.parquet")
    plan, _ = purge("one")
    assert plan.classes[ObjectClass.ANOTHER_TABLE].files > 0
    assert plan.victims.all.files == 1
    assert gone(crowd, stray)
    crowd.check()


def test_a_name_that_another_name_begins_with_is_another_table(crowd: Crowd, purge: Purge) -> None:
    crowd.table("t")
    crowd.table("t2")
    mine, theirs = crowd.stray("t/data/left.parquet"), crowd.stray("t2/data/left.parquet")
    purge("t")
    assert gone(crowd, mine)
    assert theirs in crowd.files()
    crowd.check()


def test_a_table_inside_another_is_its_own_affair(crowd: Crowd, purge: Purge) -> None:
    crowd.table("outer")
    crowd.table("inner", inside="outer/data/inner")
    mine, theirs = crowd.stray("outer/data/left.parquet"), crowd.stray("outer/data/inner/data/left.parquet")
    plan, _ = purge("outer")
    assert gone(crowd, mine)
    assert theirs in crowd.files()
    assert plan.victims.all.files == 1
    crowd.check()
    purge("inner")
    assert gone(crowd, theirs)
    crowd.check()


def test_a_table_around_another_loses_nothing_to_the_inner_one(crowd: Crowd, purge: Purge) -> None:
    crowd.table("inner", inside="outer/data/inner")
    crowd.table("outer")
    outer = crowd.writers["outer"]
    item = outer.data_file()
    placed = local(outer.location) / "data/inner/data/outers.parquet"
    os.rename(local(item.path), placed)
    crowd.ledger.contents[f"file://{placed}"] = crowd.ledger.contents[item.path]
    crowd.ledger.items[f"file://{placed}"] = replace(item, path=f"file://{placed}")
    outer.commit("append", [crowd.ledger.items[f"file://{placed}"]])
    crowd.set_age(placed, 10)
    plan, _ = purge("inner")
    assert plan.victims.all.files == 0
    crowd.check()


def test_a_table_that_moved_into_a_dropped_ones_folder_is_safe(crowd: Crowd, purge: Purge) -> None:
    crowd.table("old", inside="here")
    crowd.pointers.drop("old")
    crowd.table("new", inside="here")
    with pytest.raises(RefusedForSafety, match="no configured catalog has"):
        purge("new")
    crowd.check()


def test_a_table_registered_twice_counts_twice(crowd: Crowd, purge: Purge) -> None:
    writer = crowd.table("t")
    older = crowd.pointers.get("t")
    assert older is not None
    crowd.pointers.register("again", older)
    writer.overwrite(crowd.ledger.truths[max(crowd.ledger.truths)].data, 1)
    writer.change(lambda document: document.update(snapshots=document["snapshots"][-1:], **{"snapshot-log": []}))
    crowd.age(crowd.folder / "lake")
    purge("t")
    crowd.check()


def test_a_clone_elsewhere_keeps_what_it_shares(crowd: Crowd, purge: Purge) -> None:
    origin, clone = crowd.table("origin"), crowd.table("clone", commits=0)
    shared = [crowd.ledger.items[path] for path in crowd.ledger.truths[max(crowd.ledger.truths)].data]
    clone.commit("append", shared)
    origin.overwrite([item.path for item in shared], 1)
    origin.change(lambda document: document.update(snapshots=document["snapshots"][-1:], **{"snapshot-log": []}))
    crowd.age(crowd.folder / "lake")
    plan, _ = purge("origin")
    assert plan.classes[ObjectClass.ANOTHER_TABLE].files >= len(shared)
    crowd.check()


def test_a_table_that_no_catalog_has_stops_the_search_and_can_be_named(crowd: Crowd, purge: Purge) -> None:
    crowd.table("known")
    crowd.table("unknown", inside="known/data/unknown")
    stray = crowd.stray("known/data/left.parquet")
    pointer = crowd.pointers.get("unknown")
    assert pointer is not None
    crowd.pointers.drop("unknown")
    with pytest.raises(RefusedForSafety, match="no configured catalog has") as refused:
        purge("known")
    assert "`also=[" in refused.value.hint
    assert stray in crowd.files()
    purge("known", also=(pointer,))
    assert gone(crowd, stray)
    crowd.pointers.register("unknown", pointer)
    crowd.check()


@pytest.mark.parametrize(
    "metadata",
    [
        "_delta_log/00000000000000000000.json",
        "_delta_log/00000000000000000010.checkpoint.0000000001.0000000002.parquet",
        ".hoodie/hoodie.properties",
        "schema/schema-0",
    ],
)
def test_another_formats_table_stops_the_search(crowd: Crowd, purge: Purge, metadata: str) -> None:
    crowd.table("t")
    crowd.stray(f"t/data/other/{metadata}", data=b"{}")
    theirs = crowd.stray("t/data/other/part-0.parquet")
    with pytest.raises(RefusedForSafety, match="nobody can tell whose"):
        purge("t")
    assert theirs in crowd.files()


def test_a_table_created_after_the_roots_were_read_is_seen_before_the_purge(crowd: Crowd) -> None:
    crowd.table("first", inside="both")
    stray = crowd.stray("both/data/adopted.parquet", data=b"")
    process = crowd.process()
    _, waiting = process.orphans(crowd.name("first"), grace="1h", consent=lambda plan: True)
    late = crowd.table("late", inside="both", commits=0)
    item = late.data_file()
    os.replace(local(item.path), local(stray))
    crowd.set_age(local(stray), 10)
    crowd.ledger.contents[stray] = crowd.ledger.contents[item.path]
    crowd.ledger.items[stray] = replace(item, path=stray)
    late.commit("append", [crowd.ledger.items[stray]])
    crowd.clock.advance(2 * HOUR_MS)
    done = crowd.later().purge(waiting.id)
    assert done.outcomes["spared"].files == 1
    crowd.check()


# ---------------------------------------------------------------- spellings


def test_a_path_under_another_authority_stops_the_search(crowd: Crowd, purge: Purge) -> None:
    writer = crowd.table("t")
    place = local(writer.place())
    document = json.loads(place.read_bytes())
    statistics = {"snapshot-id": document["snapshots"][-1]["snapshot-id"], "file-size-in-bytes": 8,
                  "file-footer-size-in-bytes": 1, "blob-metadata": []}  # fmt: skip
    stray = crowd.stray("t/metadata/left.puffin", data=b"puffin..")
    elsewhere = stray.replace("file:///", "hdfs://namenode/")
    writer.change(lambda d: d.update(statistics=[{**statistics, "statistics-path": elsewhere}]))
    crowd.age(crowd.folder / "lake")
    with pytest.raises(RefusedForSafety, match="differ only in scheme, authority or encoding") as refused:
        purge("t")
    assert stray in refused.value.message
    assert elsewhere in refused.value.message
    assert "`same=[" in refused.value.hint
    assert "`keep_near_misses=True`" in refused.value.hint
    plan, _ = purge("t", keep_near_misses=True)
    assert plan.classes[ObjectClass.NEAR_MISS].files == 1
    plan, _ = purge("t", same=(("file://", "hdfs://namenode"),), dry_run=True)
    assert plan.victims.all.files == 0
    assert stray in crowd.files()


def test_a_path_that_differs_by_its_encoding_stops_the_search(crowd: Crowd, purge: Purge) -> None:
    writer = crowd.table("t")
    item = writer.data_file()
    plain = str(local(item.path).with_name("a b.parquet"))
    os.rename(local(item.path), plain)
    encoded = f"file://{plain}".replace(" ", "%20")
    crowd.ledger.contents[encoded] = crowd.ledger.contents[item.path]
    crowd.ledger.items[encoded] = replace(item, path=encoded)
    writer.commit("append", [crowd.ledger.items[encoded]])
    crowd.age(crowd.folder / "lake")
    with pytest.raises(RefusedForSafety, match="differ only"):
        purge("t")
    assert Path(plain).exists()


# ---------------------------------------------------------------- kinds


def test_statistics_deletes_and_staged_snapshots_are_needed(crowd: Crowd, purge: Purge) -> None:
    writer = crowd.table("t")
    newest = max(crowd.ledger.truths)
    writer.statistics(newest)
    writer.delete_rows(crowd.ledger.truths[newest].data[0], (0,))
    writer.append(1, on=None)
    writer.set_ref("audit", newest, "branch")
    writer.append(1, on="audit")
    crowd.age(crowd.folder / "lake")
    stray = crowd.stray("t/metadata/left.stats")
    plan, _ = purge("t")
    assert plan.victims.all.files == 1
    assert gone(crowd, stray)
    crowd.check()


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "_SUCCESS", ".part-0.parquet.crc", "data/checkpoint/offsets/0", "data/_temporary/0/part-0.parquet",
     "data/part-0.parquet.tmp", "data/.hidden.parquet", "metadata/version-hint.text", "metadata/x.bin"],
)  # fmt: skip
def test_what_no_writer_names_so_stays(crowd: Crowd, purge: Purge, name: str) -> None:
    crowd.table("t")
    strange = crowd.stray(f"t/{name}")
    plan, _ = purge("t")
    assert plan.victims.all.files == 0
    assert strange in crowd.files()


def test_what_lies_outside_the_writers_folders_stays(crowd: Crowd, purge: Purge) -> None:
    crowd.table("t")
    backup = crowd.stray("t/backup/2020.parquet")
    plan, _ = purge("t")
    assert plan.classes[ObjectClass.OUTSIDE].files == 1
    assert backup in crowd.files()


def test_a_data_path_that_tables_share_is_searched_only_by_word(crowd: Crowd, purge: Purge) -> None:
    """Another catalog's table may write there too, and nothing in the folder would tell."""
    crowd.table("t", properties={"write.data.path": f"{crowd.lake}/pool"})
    stray = crowd.stray("pool/left.parquet")
    plan, _ = purge("t")
    assert plan.victims.all.files == 0
    assert any("pool" in note for note in plan.notes)
    assert stray in crowd.files()
    plan, _ = purge("t", include_outside=True)
    assert gone(crowd, stray)
    crowd.check()


# ---------------------------------------------------------------- ages and clocks


def test_a_file_of_unknown_age_stays(crowd: Crowd, purge: Purge) -> None:
    crowd.table("t")
    ageless = crowd.stray("t/data/ageless.parquet")
    os.utime(local(ageless), (0, 0))
    plan, _ = purge("t")
    assert plan.classes[ObjectClass.UNKNOWN_AGE].files == 1
    assert ageless in crowd.files()


def test_a_copy_that_keeps_the_time_of_an_old_file_is_as_young_as_its_arrival(crowd: Crowd, purge: Purge) -> None:
    crowd.table("t")
    old = crowd.stray("t/data/old.parquet")
    arrived = f"{crowd.lake}/t/data/arrived.parquet"
    shutil.copy2(local(old), local(arrived))  # as `cp -p` does, and a writer that is about to commit it
    assert local(arrived).stat().st_mtime == local(old).stat().st_mtime
    plan, _ = purge("t")
    assert plan.classes[ObjectClass.YOUNG].files >= 1
    assert arrived in crowd.files()
    assert gone(crowd, old)


def test_a_copy_that_arrives_during_grace_with_an_old_time_is_spared(crowd: Crowd) -> None:
    crowd.table("t")
    stray = crowd.stray("t/data/left.parquet")
    _, waiting = crowd.process().orphans(crowd.name("t"), grace="1h", consent=lambda plan: True)
    other = crowd.folder / "the same, elsewhere"
    shutil.copy2(local(stray), other)
    local(stray).unlink()
    shutil.copy2(other, local(stray))
    crowd.clock.advance(2 * HOUR_MS)
    done = crowd.later().purge(waiting.id)
    assert done.outcomes["spared"].files == 1
    assert stray in crowd.files()


def test_the_floor_is_the_stores_day_though_this_machine_is_minutes_ahead(crowd: Crowd, purge: Purge) -> None:
    crowd.table("t")
    crowd.clock.skew_ms = 4 * 60_000
    young = crowd.stray("t/data/young.parquet", days=1 - 2 / (24 * 60))  # two minutes are missing
    purge("t", older_than=crowd.clock() + DAY_MS)
    assert young in crowd.files()


def test_the_floor_holds_whatever_is_asked_for(crowd: Crowd, purge: Purge) -> None:
    crowd.table("t")
    young, old = crowd.stray("t/data/young.parquet", days=0.99), crowd.stray("t/data/old.parquet", days=1.01)
    plan, _ = purge("t", older_than=crowd.clock() + DAY_MS)
    assert plan.classes[ObjectClass.YOUNG].files == 1
    assert young in crowd.files()
    assert gone(crowd, old)


def test_a_clock_that_is_behind_the_stores_is_refused(crowd: Crowd, purge: Purge) -> None:
    crowd.table("t")
    stray = crowd.stray("t/data/left.parquet")
    crowd.stray("t/data/future.parquet", days=-10 / (24 * 60))
    with pytest.raises(RefusedForSafety, match="younger than this machine's clock"):
        purge("t")
    assert stray in crowd.files()


def test_a_clock_that_is_ahead_of_the_stores_is_refused(crowd: Crowd, purge: Purge) -> None:
    crowd.table("t")
    stray = crowd.stray("t/data/left.parquet")
    crowd.clock.skew_ms = 10 * 60_000
    with pytest.raises(RefusedForSafety, match="clock and the store's differ by 10m"):
        purge("t")
    assert stray in crowd.files()


def test_what_a_clock_ahead_took_for_old_is_not_left_to_the_next_process(crowd: Crowd) -> None:
    """A write may take three days, and this one is at it for two."""
    crowd.table("t")
    young = crowd.stray("t/data/young.parquet", days=2)
    crowd.clock.skew_ms = 2 * DAY_MS
    with pytest.raises(RefusedForSafety, match="clock"):
        crowd.process().orphans(crowd.name("t"), grace="0s", consent=lambda plan: True)
    crowd.clock.skew_ms = 0
    crowd.process().resume(crowd.name("t"))
    assert young in crowd.files()


@pytest.mark.parametrize("behind_ms", [2 * DAY_MS, 4 * MINUTE_MS])
def test_the_floor_is_by_the_clock_of_the_tables_disk_where_records_are_elsewhere(crowd: Crowd, behind_ms: int) -> None:
    """The clock of the records is right, and that is the only one that the lease looks at."""
    crowd.table("t")
    crowd.clock.behind[f"{crowd.lake}/"] = behind_ms
    young = crowd.stray("t/data/young.parquet", days=1 + behind_ms / DAY_MS / 2)  # not yet a day old, on that disk
    process = crowd.process(policy=f"records: {crowd.folder}/records")
    far_off = pytest.raises(RefusedForSafety, match=r"clocks of .* differ by (2d|1d23h59m)")
    with far_off if behind_ms > DAY_MS else nullcontext():
        process.orphans(crowd.name("t"), grace="0s", older_than="1d", consent=lambda plan: True)
    assert young in crowd.files()


def test_a_file_written_again_during_grace_is_spared(crowd: Crowd) -> None:
    crowd.table("t")
    stray, untouched = crowd.stray("t/data/left.parquet"), crowd.stray("t/data/other.parquet")
    _, waiting = crowd.process().orphans(crowd.name("t"), grace="1h", consent=lambda plan: True)
    local(stray).write_bytes(b"a new one")
    crowd.clock.advance(2 * HOUR_MS)
    done = crowd.later().purge(waiting.id)
    assert done.outcomes["spared"].files == 1
    assert done.outcomes["deleted"].files == 1
    assert stray in crowd.files()
    assert gone(crowd, untouched)


# ---------------------------------------------------------------- roots that cannot be read


def test_a_table_that_cannot_be_read_stops_the_search_of_its_neighbour(crowd: Crowd, purge: Purge) -> None:
    crowd.table("t")
    other = crowd.table("other")
    stray = crowd.stray("t/data/left.parquet")
    local(other.place()).write_bytes(b"{")
    with pytest.raises(UnreadableMetadata):
        purge("t")
    assert stray in crowd.files()


def test_a_manifest_that_cannot_be_read_stops_the_search(crowd: Crowd, purge: Purge) -> None:
    writer = crowd.table("t")
    stray = crowd.stray("t/data/left.parquet")
    listed = next(iter(writer.document()["snapshots"]))["manifest-list"]
    local(listed).unlink()
    with pytest.raises(UnreadableMetadata):
        purge("t")
    assert stray in crowd.files()


def test_a_listing_without_what_the_table_needs_is_not_believed(crowd: Crowd, purge: Purge, tmp_path: Path) -> None:
    crowd.table("t")
    stray = crowd.stray("t/data/left.parquet")
    inventory = tmp_path / "inventory.csv"
    inventory.write_text(f"path,size,modified\n{stray},8,2020-01-01T00:00:00Z\n")
    with pytest.raises(RefusedForSafety, match=r"shows nothing that .* needs"):
        purge("t", inventory=inventory)
    assert stray in crowd.files()


def test_metadata_that_nobody_can_read_stops_the_search(crowd: Crowd, purge: Purge) -> None:
    crowd.table("t")
    stray = crowd.stray("t/data/left.parquet")
    crowd.stray("t/metadata/00009-torn.metadata.json", data=b'{"format-version": 2, "tab')
    with pytest.raises(RefusedForSafety, match="nobody can tell whose"):
        purge("t")
    assert stray in crowd.files()


def test_a_folder_that_cannot_be_listed_is_no_empty_folder(crowd: Crowd, purge: Purge) -> None:
    if os.getuid() == 0:
        pytest.skip("root may list everything")
    crowd.table("t")
    (crowd.folder / "lake/t/data").chmod(0)
    with pytest.raises(StoreError):
        purge("t")


def test_a_version_from_the_future_stops_the_search(crowd: Crowd, purge: Purge) -> None:
    crowd.table("t")
    other = crowd.table("other")
    other.change(lambda document: document.update({"format-version": 9}))
    stray = crowd.stray("t/data/left.parquet")
    with pytest.raises(RefusedForSafety):
        purge("t")
    assert stray in crowd.files()


# ---------------------------------------------------------------- runs of our own


def test_what_an_undoable_run_took_out_is_needed(crowd: Crowd, purge: Purge) -> None:
    writer = crowd.table("t")
    for _ in range(3):
        writer.overwrite(crowd.ledger.truths[max(crowd.ledger.truths)].data, 1)
    crowd.age(crowd.folder / "lake")
    stray = crowd.stray("t/data/left.parquet")
    expired = crowd.process().expire(
        crowd.name("t"), older_than=crowd.clock() + DAY_MS, retain_last=1, grace="24h", blast_radius=1.0
    )
    purge("t")
    assert gone(crowd, stray)
    crowd.process().undo(expired.id)  # type: ignore[union-attr]
    crowd.check()


def test_a_table_hold_stops_search_and_purge(crowd: Crowd, purge: Purge) -> None:
    crowd.table("t")
    stray = crowd.stray("t/data/left.parquet")
    _, waiting = crowd.process().orphans(crowd.name("t"), grace="1h", consent=lambda plan: True)
    crowd.process().hold_add(crowd.name("t"), "legal")
    with pytest.raises(CollectionForbidden):
        purge("t")
    crowd.clock.advance(2 * HOUR_MS)
    with pytest.raises(CollectionForbidden):
        crowd.later().purge(waiting.id)
    assert stray in crowd.files()


def test_a_table_dropped_during_grace_stops_the_purge(crowd: Crowd) -> None:
    crowd.table("t")
    crowd.table("other")
    stray = crowd.stray("t/data/left.parquet")
    _, waiting = crowd.process().orphans(crowd.name("t"), grace="1h", consent=lambda plan: True)
    crowd.pointers.drop("t")
    crowd.clock.advance(2 * HOUR_MS)
    with pytest.raises(NoSuchTable):
        crowd.later().purge(waiting.id)
    assert stray in crowd.files()
