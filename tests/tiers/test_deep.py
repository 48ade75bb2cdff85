"""What is too old for the cold tier sleeps in bundles of the deep one, and comes back from there."""

from __future__ import annotations

import tarfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from firnline.errors import ArchiveIncomplete, CollectionForbidden, PolicyError, UsageError
from firnline.ops.tiers.restoring import Restored
from tests.neighbours.lakes import COLUMN
from tests.tiers.deep_lakes import FORMAL, DeepLake, deep_lake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeepLake]:
    with deep_lake(tmp_path, monkeypatch) as made:
        made.create("t")
        for number in range(4):
            made.append("t", number)
        made.overwrite("t", 9)
        yield made


def _asleep(lake: DeepLake) -> tuple[dict[int, list[int]], set[int]]:
    """Hands all to cold and from there to deep. Returns the rows of every snapshot, and those that are only deep."""
    before = lake.rows_by_snapshot("t")
    assert lake.expire("t").state == "done"
    cold = set(lake.cold_rows("t"))
    assert lake.expire_cold("t").state == "done"
    left = set(lake.cold_rows("t"))
    assert left < cold
    assert lake.deep_ids("t") == cold - left
    return before, cold - left


def _members(bundle: Path) -> list[str]:
    with tarfile.open(bundle) as opened:
        return opened.getnames()


def test_what_is_too_old_for_cold_lies_in_bundles(lake: DeepLake) -> None:
    _, deep = _asleep(lake)
    packed = [name for bundle in lake.bundles() for name in _members(bundle)]
    assert packed
    assert all(name.endswith(".parquet") for name in packed)
    data = [each for each in lake.deep_root.rglob("*.parquet") if "index" not in each.parts]
    assert data == []
    found = lake.firnline().tiers("lake.db.t")
    assert {int(each.id) for each in found.snapshots if each.tiers == ("deep",)} == deep


@pytest.mark.full
def test_it_comes_back_to_cold(lake: DeepLake) -> None:
    before, deep = _asleep(lake)
    for each in deep:
        restored = lake.firnline().restore("lake.db.t", str(each), to="cold", inquiry=FORMAL)
        assert isinstance(restored, Restored)
        assert lake.cold_rows("t")[each] == before[each]
    assert lake.firnline().check("cold.db.t").sound


def test_it_comes_back_to_the_live_table(lake: DeepLake) -> None:
    before, deep = _asleep(lake)
    for each in deep:
        lake.firnline().restore("lake.db.t", str(each), inquiry=FORMAL)
        assert lake.rows_by_snapshot("t")[each] == before[each]
    assert lake.firnline().check("lake.db.t").sound


@pytest.mark.full
def test_it_comes_back_to_a_place_of_its_own(lake: DeepLake, tmp_path: Path) -> None:
    before, deep = _asleep(lake)
    old = min(deep)
    restored = lake.firnline().restore("lake.db.t", str(old), to=f"file://{tmp_path}/elsewhere", inquiry=FORMAL)
    assert isinstance(restored, Restored)
    assert restored.metadata is not None
    table = StaticTable.from_metadata(restored.metadata)
    assert sorted(table.scan(snapshot_id=old).to_arrow().column(COLUMN).to_pylist()) == before[old]


def test_a_deep_restore_is_a_formal_act(lake: DeepLake) -> None:
    _, deep = _asleep(lake)
    old = str(min(deep))
    with pytest.raises(UsageError, match="for a case, by a person"):
        lake.firnline().restore("lake.db.t", old)
    with pytest.raises(UsageError, match="for a case, by a person"):
        lake.firnline().restore("lake.db.t", old, inquiry=replace(FORMAL, by=" "))
    assert lake.firnline().tiers("lake.db.t").restores == ()
    lake.firnline().restore("lake.db.t", old, inquiry=FORMAL)
    said = [(each.event, each.case, each.by, each.snapshot) for each in lake.firnline().tiers("lake.db.t").restores]
    assert said == [("requested", "INCIDENT-7", "A. Person", old), ("restored", "INCIDENT-7", "A. Person", old)]


def test_a_tier_loses_nothing_without_a_window_and_a_tier_of_its_own(lake: DeepLake) -> None:
    lake.expire("t")
    before = lake.cold_rows("t")
    kept = lake.policy
    lake.policy = kept.replace("    archive: deep\n    keep: {last: 1}\n", "    archive: off\n")
    with pytest.raises(CollectionForbidden, match="keeps the history of another table"):
        lake.expire_cold("t")
    lake.policy = kept.replace("    keep: {last: 1}\n", "") + "keep: {last: 1}\n"
    with pytest.raises(CollectionForbidden, match="no rule of its own"):
        lake.firnline().expire("cold.db.t", grace="0s")
    lake.policy = kept.replace("last: 1", "within: 2555d")
    assert lake.firnline().plan("cold.db.t").plan.expire == ()
    with pytest.raises(CollectionForbidden):
        lake.firnline().orphans("cold.db.t")
    assert lake.cold_rows("t") == before


@pytest.mark.full
def test_a_bundle_that_is_damaged_stops_the_purge(lake: DeepLake) -> None:
    lake.expire("t")
    before = lake.cold_rows("t")
    committed = lake.expire_cold("t", grace="1s")
    assert committed.state == "committed"
    bundle = lake.bundles()[0]
    whole = bytearray(bundle.read_bytes())
    whole[600] ^= 1
    bundle.chmod(0o644)
    bundle.write_bytes(whole)
    time.sleep(1.2)  # until its grace is over
    with pytest.raises(ArchiveIncomplete):
        lake.firnline().purge(str(committed.run.id))
    lake.firnline().undo(str(committed.run.id))
    assert lake.cold_rows("t") == before


def test_a_tier_that_had_no_bundles_before_reads_what_came_then(lake: DeepLake) -> None:
    packed = lake.policy
    lake.policy = packed.replace("    bundle: 1MiB\n", "")
    lake.expire("t")
    lake.expire_cold("t")
    plain = lake.deep_ids("t")
    assert plain
    assert lake.bundles() == []
    lake.append("t", 11)
    lake.overwrite("t", 12)
    before = lake.rows_by_snapshot("t")
    lake.policy = packed
    lake.expire("t")
    cold = lake.cold_rows("t")
    assert lake.expire_cold("t").state == "done"
    assert lake.bundles()
    for each in lake.deep_ids("t") - set(lake.cold_rows("t")):
        lake.firnline().restore("lake.db.t", str(each), to="cold", inquiry=FORMAL)
        rows = lake.cold_rows("t")[each]
        assert rows == {**before, **cold}.get(each, rows)


def test_a_restore_reads_only_the_bundles_of_its_snapshot(lake: DeepLake) -> None:
    before, first = _asleep(lake)
    own = set(lake.bundles())
    lake.overwrite("t", 10)
    lake.overwrite("t", 11)
    lake.expire("t")
    lake.expire_cold("t")
    others = set(lake.bundles()) - own
    assert others
    for each in others:
        each.unlink()
    old = min(first)
    lake.firnline().restore("lake.db.t", str(old), to="cold", inquiry=FORMAL)
    assert lake.cold_rows("t")[old] == before[old]


@pytest.mark.full
def test_bundles_that_the_policy_forgot_are_told(lake: DeepLake) -> None:
    """Without the word nothing would look into them."""
    before, deep = _asleep(lake)
    lake.overwrite("t", 10)
    lake.overwrite("t", 11)
    lake.expire("t")
    cold = lake.cold_rows("t")
    kept = lake.policy
    lake.policy = kept.replace("    bundle: 1MiB\n", "")
    with pytest.raises(PolicyError, match="lie in bundles"):
        lake.firnline().restore("lake.db.t", str(min(deep)))
    with pytest.raises(PolicyError, match="lie in bundles"):
        lake.expire_cold("t")
    assert lake.cold_rows("t") == cold
    lake.policy = kept
    lake.firnline().restore("lake.db.t", str(min(deep)), inquiry=FORMAL)
    assert lake.rows_by_snapshot("t")[min(deep)] == before[min(deep)]
