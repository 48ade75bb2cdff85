"""What lies around a deep tier, and what moves meanwhile: nothing is mixed, nothing is lost, and all is found."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog

from firnline.app.places import now_ms
from firnline.errors import ArchiveIncomplete, CollectionForbidden, FirnlineError, PolicyError, RefusedForSafety
from firnline.ops.tiers.restoring import Restored
from tests.neighbours.lakes import COLUMN, rows
from tests.tiers.cutting import Before, passing_through
from tests.tiers.deep_lakes import FORMAL, DeepLake, deep_lake
from tests.tiers.lakes import forget_catalogs


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeepLake]:
    with deep_lake(tmp_path, monkeypatch) as made:
        made.create("t")
        made.append("t", 1)
        made.append("t", 2)
        made.overwrite("t", 7, 8)
        yield made


def _other_catalog(lake: DeepLake) -> SqlCatalog:
    settings = {"type": "sql", "uri": f"sqlite:///{lake.folder}/other.db", "warehouse": f"file://{lake.folder}/second"}
    configured = yaml.safe_load((lake.folder / ".pyiceberg.yaml").read_text())
    configured["catalog"]["other"] = settings
    (lake.folder / ".pyiceberg.yaml").write_text(yaml.safe_dump(configured))
    forget_catalogs()
    catalog = SqlCatalog("other", **settings)
    catalog.create_namespace("db")
    return catalog


@pytest.mark.full
def test_a_table_that_was_made_like_a_cold_one_is_no_archive(lake: DeepLake) -> None:
    """It inherits all properties, also the one that says whose history the cold table holds."""
    lake.expire("t")
    cold = lake.cold_rows("t")
    other = _other_catalog(lake)
    like = other.create_table("db.t", pa.schema([(COLUMN, pa.int64())]), properties=lake.cold_table("t").properties)
    for number in (50, 51, 52):
        like.append(rows(number))
    with pytest.raises(CollectionForbidden, match=r"gc\.enabled"):
        lake.firnline().expire("other.db.t", older_than=now_ms(), retain_last=1, grace="0s")
    with like.transaction() as change:
        change.set_properties({"gc.enabled": "true"})
    with pytest.raises(RefusedForSafety, match="does not hold the history"):
        lake.firnline().expire("other.db.t", older_than=now_ms(), retain_last=1, grace="0s")
    assert lake.cold_rows("t") == cold
    assert len(other.load_table("db.t").snapshots()) == 3
    assert lake.firnline().tiers("other.db.t").holdings[-1].tier == "live"
    assert lake.expire_cold("t").state == "done"
    assert len(lake.deep_ids("t")) == len(cold) - 1


def test_what_went_deeper_before_the_live_purge(lake: DeepLake) -> None:
    """The purge is refused, and says how it can be done: what the live table still has may be all that is readable."""
    run = str(lake.expire("t", grace="1s").run.id)
    lake.expire_cold("t")
    time.sleep(1.2)  # until the live run's grace is over
    with pytest.raises(ArchiveIncomplete) as refused:
        lake.firnline().purge(run)
    assert "firnline undo" in refused.value.hint
    assert "--to cold" in refused.value.hint
    for each in lake.deep_ids("t"):
        lake.firnline().restore("lake.db.t", str(each), to="cold", inquiry=FORMAL)
    assert lake.firnline().purge(run).state == "done"


@pytest.mark.full
def test_a_cold_table_that_was_renamed_is_found_in_the_deep_tier(lake: DeepLake) -> None:
    before = lake.rows_by_snapshot("t")
    lake.expire("t")
    lake.cold.rename_table("db.t", "db.z")
    forget_catalogs()
    assert lake.firnline().expire("cold.db.z", grace="0s", blast_radius=1.0).state == "done"
    deep = lake.deep_ids("z")
    found = lake.firnline().tiers("lake.db.t").snapshots
    assert {int(each.id) for each in found if each.tiers == ("deep",)} == deep
    for each in deep:
        assert isinstance(lake.firnline().restore("lake.db.t", str(each), inquiry=FORMAL), Restored)
        assert lake.rows_by_snapshot("t")[each] == before[each]


@pytest.mark.full
def test_brought_back_to_cold_and_expired_again(lake: DeepLake) -> None:
    before, order = lake.rows_by_snapshot("t"), [each.snapshot_id for each in lake.table("t").snapshots()]
    lake.expire("t")
    lake.expire_cold("t")
    deep, bundles = lake.deep_ids("t"), lake.bundles()
    old = max(deep, key=order.index)  # the newest, from which main's own came: others are no part of main's history now
    lake.firnline().restore("lake.db.t", str(old), to="cold", inquiry=FORMAL)
    assert lake.cold_rows("t")[old] == before[old]
    lake.cold_table("t").manage_snapshots().remove_tag(f"restored-{old}").commit()
    assert lake.expire_cold("t").state == "done"
    assert old not in lake.cold_rows("t")
    assert lake.bundles() == bundles
    with lake.unpacked():
        assert lake.deep_rows("t") == {each: before[each] for each in deep}


def test_what_lies_in_bundles_is_looked_at_there(lake: DeepLake) -> None:
    lake.expire("t")
    lake.expire_cold("t")
    assert lake.firnline().check("deep.db.t").sound
    looked_at = lake.firnline().several().check()
    assert {str(each.table) for each in looked_at if each.problem is None} == {"lake.db.t", "cold.db.t", "deep.db.t"}


def test_nothing_goes_on_from_a_deep_tier(lake: DeepLake) -> None:
    lake.expire("t")
    lake.expire_cold("t")
    deep = lake.deep_ids("t")
    said = lake.policy
    lake.policy = said.replace("  deep:\n    archive: off", "  deep:\n    archive: cold\n    keep: {last: 1}")
    with pytest.raises(PolicyError, match="sleeps in bundles"):
        lake.firnline().expire("deep.db.t", grace="0s", blast_radius=1.0)
    lake.policy = said.replace("    archive: deep\n", "    archive: cold\n")
    lake.append("t", 20)
    lake.append("t", 21)
    lake.expire("t")
    with pytest.raises(PolicyError, match="is in the tier cold itself"):
        lake.expire_cold("t")
    assert lake.deep_ids("t") == deep


@pytest.mark.full
def test_handed_over_while_the_cold_table_is_purged(lake: DeepLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that the purge of the cold table is about to delete lies there when another snapshot with it comes.

    1. The purge has looked at the cold table, and sends its deletes.
    2. A live run finds the file in the tier, places its snapshot, commits, and purges the file of the live table.
    3. The deletes arrive.
    """
    table = lake.table("t")
    first, *_ = sorted(table.snapshots(), key=lambda each: each.timestamp_ms)
    table.manage_snapshots().create_branch(first.snapshot_id, "b").commit()
    table = lake.table("t")
    table.append(rows(3), branch="b")
    before = lake.rows_by_snapshot("t")
    lake.expire("t")
    table = lake.table("t")
    table.manage_snapshots().remove_branch("b").commit()

    def hand_over() -> None:
        with suppress(FirnlineError):
            lake.expire("t")

    fault = Before("delete", f"{lake.cold_root}/", hand_over)
    with suppress(FirnlineError), passing_through(fault, lake.folder, monkeypatch):
        lake.expire_cold("t")
    assert fault.acted
    lake.firnline().resume("cold.db.t")
    lake.firnline().resume("lake.db.t")
    with lake.unpacked():
        assert {**lake.deep_rows("t"), **lake.rows_by_snapshot("t"), **lake.cold_rows("t")} == before
    lake.expire("t")
    assert len(lake.rows_by_snapshot("t")) == 1
    assert lake.firnline().check("cold.db.t").sound


def _with_root(lake: DeepLake, root: str) -> None:
    lake.policy = lake.policy.replace(f"file://{lake.deep_root}", f'"file://{lake.folder}{root}"')


def test_a_root_with_any_signs(lake: DeepLake) -> None:
    lake.expire("t")
    before = lake.cold_rows("t")
    _with_root(lake, "//sehr tief%20ü//für immer/")
    assert lake.expire_cold("t").state == "done"
    for each in lake.deep_ids("t"):
        lake.firnline().restore("lake.db.t", str(each), to="cold", inquiry=FORMAL)
    assert lake.cold_rows("t") == before


@pytest.mark.sampled(1)
@pytest.mark.parametrize("root", ["", "/colder", "/link"])
def test_a_root_around_the_cold_table(lake: DeepLake, root: str) -> None:
    lake.expire("t")
    before = lake.cold_rows("t")
    (lake.folder / "link").symlink_to(lake.cold_root)
    _with_root(lake, root)
    with pytest.raises(RefusedForSafety, match="lie in each other"):
        lake.expire_cold("t")
    assert lake.cold_rows("t") == before
