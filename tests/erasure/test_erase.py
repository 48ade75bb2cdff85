"""A data file goes from every snapshot of a live table and of its tiers. The snapshots stay, and lose nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from firnline.errors import RefusedForSafety, UsageError
from tests.erasure.erasing import erase, file_of, is_lying, mentions, planned, without
from tests.neighbours.lakes import COLUMN, RealLake
from tests.tiers.deep_lakes import DeepLake


def test_a_plan_tells_who_loses_it_and_changes_nothing(lake: DeepLake) -> None:
    before = lake.rows_by_snapshot("t")
    path = file_of(lake, "t", 1)
    metadata = lake.table("t").metadata_location
    (live,) = planned(lake, "t", path).tables
    assert {int(each) for each in live.naming.losing} == {each for each, rows in before.items() if 1 in rows}
    assert [(each.path, each.rows) for each in live.naming.files] == [(path, 1)]
    assert lake.table("t").metadata_location == metadata
    assert lake.rows_by_snapshot("t") == before


def test_every_snapshot_of_the_live_table_loses_it(lake: DeepLake) -> None:
    before = lake.rows_by_snapshot("t")
    path = file_of(lake, "t", 1)
    report = erase(lake, "t", path)
    assert report.is_done
    assert not is_lying(path)
    assert lake.rows_by_snapshot("t") == without(before, 1)
    assert lake.firnline().check("lake.db.t").sound
    assert mentions(lake.folder / "warehouse", Path(path).name) == []
    lake.append("t", 17)
    assert lake.read("t") == [0, 2, 3, 17]
    assert lake.expire("t").state == "done"
    assert lake.read("t") == [0, 2, 3, 17]


@pytest.mark.full
def test_it_goes_from_the_tiers_too(lake: DeepLake) -> None:
    path = file_of(lake, "t", 1)
    before = lake.rows_by_snapshot("t")
    assert lake.expire("t").state == "done"
    assert lake.expire_cold("t").state == "done"
    deep = lake.deep_ids("t")
    found = planned(lake, "t", path)
    assert [each.tier for each in found.tables if not each.is_nothing] == ["live", "cold", "deep"]
    report = erase(lake, "t", path)
    assert report.is_done, report.to_json()
    assert [each.repacked for each in report.tables] == [0, 0, 1]
    after = without(before, 1)
    assert lake.cold_rows("t") == {each: after[each] for each in lake.cold_rows("t")}
    with lake.unpacked():
        assert lake.deep_rows("t") == {each: after[each] for each in deep}
    assert lake.firnline().check("cold.db.t").sound
    assert lake.firnline().check("deep.db.t").sound
    left = mentions(lake.folder, Path(path).name)
    assert [each.name.rpartition(".begun")[1] for each in left] == [".begun"]


def test_it_is_asked_for_once(lake: DeepLake) -> None:
    path = file_of(lake, "t", 1)
    assert erase(lake, "t", path).is_done
    again = erase(lake, "t", path)
    assert again.is_done
    with pytest.raises(UsageError, match="no snapshot names"):
        planned(lake, "t", path)


def test_grace_leaves_the_file_to_readers_and_the_same_call_goes_on(lake: DeepLake) -> None:
    path = file_of(lake, "t", 1)
    first = erase(lake, "t", path, grace="1h")
    assert not first.is_done
    assert is_lying(path)
    assert lake.read("t") == [0, 2, 3]
    assert first.tables[0].run is not None
    with pytest.raises(RefusedForSafety, match="does not come back"):
        lake.firnline().undo(first.tables[0].run.id)


def test_a_file_that_nobody_names_is_refused(lake: DeepLake) -> None:
    with pytest.raises(UsageError, match="no snapshot names"):
        erase(lake, "t", f"file://{lake.folder}/warehouse/db/t/data/other.parquet")


def test_a_hold_on_a_snapshot_is_stronger(plain: RealLake) -> None:
    path = file_of(plain, "t", 1)
    plain.firnline().hold("lake.db.t", "audit", "main", why="law", who="legal")
    before = plain.read_all("t")
    with pytest.raises(RefusedForSafety, match="the hold audit"):
        erase(plain, "t", path)
    assert plain.read_all("t") == before


def test_what_an_undoable_run_may_bring_back_is_not_erased(plain: RealLake) -> None:
    run = plain.expire("t", grace="1h")
    path = file_of(plain, "t", 1)
    with pytest.raises(RefusedForSafety, match="may still bring it back"):
        erase(plain, "t", path)
    assert is_lying(path)
    assert plain.firnline().undo(run.id).state == "undone"
    assert plain.read_all("t") == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    assert erase(plain, "t", path).is_done
    assert plain.read_all("t") == [[0], [0], [0, 2], [0, 2, 3]]


def test_a_table_that_shares_the_file_stops_it(plain: RealLake) -> None:
    path = file_of(plain, "t", 1)
    plain.clone("t", "copy")
    with pytest.raises(RefusedForSafety, match="another table needs it"):
        erase(plain, "t", path)
    assert is_lying(path)
    assert plain.read("copy") == [0, 1, 2, 3]
    assert plain.read("t") == [0, 1, 2, 3]


def test_what_a_summary_tells_of_its_partition_goes_too(plain: RealLake) -> None:
    """Writers note the values of partitions there, where they are asked to."""
    table = plain.create("p", **{"write.summary.partition-limit": "100"})
    table.update_spec().add_identity(COLUMN).commit()
    plain.append("p", 17)
    plain.append("p", 18)
    assert "partitions.x=17" in plain.table("p").metadata.model_dump_json()
    assert erase(plain, "p", file_of(plain, "p", 17)).is_done
    assert "x=17" not in plain.table("p").metadata.model_dump_json()
    assert plain.read_all("p") == [[], [18]]
