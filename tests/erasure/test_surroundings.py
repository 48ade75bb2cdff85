"""What lies around an erasure: files that nobody knows, other spellings, tiers that have no table yet, or another
policy, and processes that stop in between. It never says that it is done while it can know better.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from firnline.app.requests import age_ms
from firnline.errors import ArchiveIncomplete, PolicyError, RefusedForSafety, TableMoved, UsageError
from firnline.model.times import DAY_MS
from firnline.ops.erasure import repacking
from firnline.ops.erasure.report import ErasurePlan, ErasureReport
from firnline.testing.faults import Died
from tests.erasure.erasing import ASKED, erase, file_of, is_lying, mentions, planned
from tests.neighbours.lakes import RealLake
from tests.tiers.cutting import Before, passing_through
from tests.tiers.deep_lakes import DeepLake


def _handed_down(lake: DeepLake) -> str:
    """Returns a file that lies in the live table, the cold one and a bundle of the deep one."""
    path = file_of(lake, "t", 1)
    assert lake.expire("t").state == "done"
    assert lake.expire_cold("t").state == "done"
    return path


def _in_bundles(lake: DeepLake, path: str) -> bool:
    return any(Path(path).name.encode() in bundle.read_bytes() for bundle in lake.bundles())


def test_a_file_that_nobody_names_beside_one_that_is_named_stops_all(plain: RealLake) -> None:
    """A name with a slip of the pen would count as erased."""
    path = file_of(plain, "t", 1)
    with pytest.raises(UsageError, match=r"slip\.parquet"):
        erase(plain, "t", path, path.replace(Path(path).name, "slip.parquet"))
    assert is_lying(path)
    assert plain.read("t") == [0, 1, 2, 3]


def test_what_was_not_shown_is_asked_for_although_another_erasure_has_begun(plain: RealLake) -> None:
    one, two = file_of(plain, "t", 1), file_of(plain, "t", 2)
    assert not erase(plain, "t", one, grace="1h").is_done
    shown: list[ErasurePlan] = []
    report = plain.firnline().erasures.carry_out("lake.db.t", [one, two], ASKED, 0, shown.append)
    assert [each.path for plan in shown for loss in plan.tables for each in loss.naming.files] == [two]
    assert not report.is_done
    assert plain.read("t") == [0, 3]


def test_one_that_stopped_before_its_commit_is_planned_again_if_the_table_moved(
    plain: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(plain, "t", 1)
    _stopped_before_commit(plain, path, monkeypatch)
    plain.append("t", 4)
    assert erase(plain, "t", path).is_done
    assert plain.read_all("t") == [[0], [0], [0, 2], [0, 2, 3], [0, 2, 3, 4]]


def test_one_that_stopped_before_its_commit_is_resumed_although_the_table_moved(
    plain: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(plain, "t", 1)
    _stopped_before_commit(plain, path, monkeypatch)
    plain.append("t", 4)
    (found,) = plain.firnline().resume("lake.db.t")
    assert found.state == "done"
    assert plain.read_all("t") == [[0], [0], [0, 2], [0, 2, 3], [0, 2, 3, 4]]


def test_one_that_another_left_behind_holds_up_no_other_run(plain: RealLake, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file_of(plain, "t", 1)
    _stopped_before_commit(plain, path, monkeypatch)
    assert erase(plain, "t", file_of(plain, "t", 2)).is_done
    first, _ = plain.firnline().runs("lake.db.t")
    (found,) = [each for each in plain.firnline().resume("lake.db.t") if each.id == first.id]
    assert found.state == "committing"
    assert "not as it was planned" in str(found.waits)
    assert erase(plain, "t", path).is_done
    assert plain.read_all("t") == [[0], [0], [0], [0, 3]]


def _stopped_before_commit(lake: RealLake, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Died), passing_through(Before("commit", "catalog.db", _die), lake.folder, monkeypatch):
        erase(lake, "t", path)


def _die() -> None:
    raise Died


@pytest.mark.full
def test_another_spelling_of_its_name_goes_from_bundles_too(lake: DeepLake) -> None:
    path = _handed_down(lake)
    spelled = path.replace("/warehouse/", "//warehouse//")
    assert erase(lake, "t", spelled).is_done
    assert not _in_bundles(lake, path)


def test_bundles_that_the_policy_forgot_stop_it(lake: DeepLake) -> None:
    path = _handed_down(lake)
    lake.policy = lake.policy.replace("    bundle: 1MiB\n", "")
    with pytest.raises(PolicyError, match="lie in bundles"):
        erase(lake, "t", path)
    assert lake.read("t") == [0, 1, 2, 3]


def test_the_table_of_a_tier_is_not_the_one_to_name(lake: DeepLake) -> None:
    path = _handed_down(lake)
    with pytest.raises(UsageError, match="history of another table"):
        erase_named(lake, "cold.db.t", path)
    assert erase(lake, "t", path).is_done


def erase_named(lake: RealLake, table: str, *files: str) -> None:
    lake.firnline().erasures.carry_out(table, files, ASKED, age_ms("0s"), lambda plan: None)


def test_what_a_hand_over_left_in_a_tier_without_a_table_is_told(
    lake: DeepLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first hand-over died after its copies: no table of the tier names them."""
    path = file_of(lake, "t", 1)
    with pytest.raises(Died), passing_through(Before("commit", "cold.db", _die), lake.folder, monkeypatch):
        lake.expire("t")
    assert mentions(lake.cold_root, Path(path).name)
    report = erase(lake, "t", path)
    assert not report.is_done
    assert [(each.tier, len(each.left)) for each in report.tables if each.left] == [("cold", 1)]


@pytest.mark.full
def test_it_goes_from_deep_where_cold_has_no_table_any_more(lake: DeepLake) -> None:
    path = _handed_down(lake)
    lake.cold.drop_table("db.t")
    report = erase(lake, "t", path)
    assert not _in_bundles(lake, path)
    assert not any(1 in rows for rows in lake.rows_by_snapshot("t").values())
    assert report.is_done == (not mentions(lake.cold_root / "x", Path(path).name) and not _copies(lake, path))


def _copies(lake: DeepLake, path: str) -> list[Path]:
    return list(lake.cold_root.rglob(Path(path).name))


@pytest.mark.full
def test_a_bundle_whose_end_was_left_is_removed_by_the_same_call(
    lake: DeepLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No snapshot of any table names the file: only a bundle holds it, and only a note says that it goes."""
    path = _handed_down(lake)
    (bundle,) = lake.bundles()
    with pytest.raises(Died), passing_through(Before("delete", bundle.name, _die), lake.folder, monkeypatch):
        erase(lake, "t", path)
    assert bundle.exists()
    assert planned(lake, "t", path).tables[-1].bundles == (f"file://{bundle}",)
    assert erase(lake, "t", path).is_done
    assert not bundle.exists()


def test_a_file_that_only_an_undoable_run_names_is_told(plain: RealLake) -> None:
    path = file_of(plain, "t", 1)
    plain.overwrite("t", 9)
    run = plain.expire("t", grace="1h")
    with pytest.raises(RefusedForSafety, match="may still bring it back"):
        erase(plain, "t", path)
    assert plain.firnline().undo(run.id).state == "undone"
    assert erase(plain, "t", path).is_done
    assert plain.read("t") == [9]


def test_what_cold_cannot_lose_is_known_before_live_loses_it(lake: DeepLake) -> None:
    path = file_of(lake, "t", 1)
    assert lake.expire("t").state == "done"
    assert lake.expire_cold("t", grace="1h").state == "committed"
    with pytest.raises(RefusedForSafety, match=r"cold\.db\.t.*may still bring it back"):
        erase(lake, "t", path)
    assert lake.read("t") == [0, 1, 2, 3]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("before", [("put_if_absent", "/warehouse/db/t/metadata/snap-"), ("commit", "catalog.db")])
def test_what_a_restore_under_way_brings_back_is_told(
    lake: DeepLake, monkeypatch: pytest.MonkeyPatch, before: tuple[str, str]
) -> None:
    """Its copies lie in the live table's folder when the tier loses the file; then it would commit."""
    path = file_of(lake, "t", 1)
    old = min(each for each, rows in lake.rows_by_snapshot("t").items() if rows == [0, 1])
    lake.overwrite("t", 9)
    assert lake.expire("t").state == "done"
    assert not is_lying(path)
    reports: list[ErasureReport] = []
    fault = Before(*before, lambda: reports.append(erase(lake, "t", path)))
    with suppress(TableMoved), passing_through(fault, lake.folder, monkeypatch):
        lake.firnline().restore("lake.db.t", str(old))
    assert [report.is_done for report in reports] == [False]
    is_back = any(1 in rows for rows in lake.rows_by_snapshot("t").values())
    assert is_back == (before[0] == "commit")
    assert erase(lake, "t", path).is_done == is_back
    assert not any(1 in rows for rows in lake.rows_by_snapshot("t").values())
    assert is_lying(path) != is_back  # a copy that nothing names is told until a search for orphans removes it


@pytest.mark.parametrize("is_old", [False, True])
@pytest.mark.sampled(1)
def test_a_bundle_that_no_index_names_goes_or_is_told(
    lake: DeepLake, monkeypatch: pytest.MonkeyPatch, is_old: bool
) -> None:
    """A hand-over died after it wrote a bundle, before it could say what it holds; the next one packed all again."""
    path = file_of(lake, "t", 1)
    assert lake.expire("t").state == "done"
    with pytest.raises(Died), passing_through(Before("put_if_absent", "/index/", _die), lake.folder, monkeypatch):
        lake.expire_cold("t")
    (stray,) = lake.bundles()
    lake.firnline().resume("cold.db.t")
    lake.expire_cold("t")
    assert len(lake.bundles()) > 1
    monkeypatch.setattr(repacking, "DAY_MS", 0 if is_old else DAY_MS)
    report = erase(lake, "t", path)
    assert report.is_done == is_old
    assert [each for table in report.tables for each in table.left] == ([] if is_old else [f"file://{stray}"])
    assert _in_bundles(lake, path) == stray.exists() == (not is_old)
    with lake.unpacked():
        assert not any(1 in rows for rows in lake.deep_rows("t").values())


def test_bundles_whose_index_is_lost_are_left_alone(lake: DeepLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle that no segment names looks like one that a hand-over left behind, and may be all that is left."""
    lake.expire("t")
    lake.expire_cold("t")
    before = {each: each.read_bytes() for each in lake.bundles()}
    monkeypatch.setattr(repacking, "DAY_MS", -DAY_MS)
    for segment in lake.deep_root.glob("_bundles/*/index/*.parquet"):
        segment.unlink()
    path = file_of(lake, "t", 3)
    with pytest.raises(ArchiveIncomplete, match="in no bundle"):
        erase(lake, "t", path)
    assert {each: each.read_bytes() for each in lake.bundles()} == before
