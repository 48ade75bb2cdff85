"""What makes an Iceberg table large, by what its summaries say; whatever nonsense they say, a plan is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firnline.app.engines import is_large
from firnline.formats.iceberg.counts import files_told, live_size
from firnline.formats.iceberg.table import IcebergFormat
from firnline.model.files import Tally
from firnline.stores.objects import ObjectStores
from firnline.testing.tables import QuickFiles, SmallTable


def document(*summaries: object) -> dict[str, Any]:
    return {"snapshots": [{"snapshot-id": number, "summary": each} for number, each in enumerate(summaries)]}


def test_the_largest_snapshot_counts_with_its_delete_files() -> None:
    said = document({"total-data-files": "7", "total-delete-files": "5"}, {"total-data-files": "9"})
    assert files_told(said) == 12


def test_a_small_table_that_is_written_anew_all_the_time_is_large() -> None:
    said = {"total-data-files": "10", "added-data-files": "9", "added-delete-files": "1"}
    assert files_told(document(*[said] * 1_000)) == 10_000


@pytest.mark.parametrize(
    "garbage", ["-5", "", "1e9", "nan", None, [], {}, "9" * 18, "9" * 5_000, "٣", True, " 7", "+7"]
)
def test_garbage_says_nothing(garbage: object) -> None:
    said = {"total-data-files": garbage, "added-data-files": garbage, "total-delete-files": "3"}
    assert files_told(document(said, garbage)) == 3


@pytest.mark.parametrize("snapshots", [None, [], ["?"], [None], [{"summary": "?"}]])
def test_without_summaries_nothing_is_said(snapshots: object) -> None:
    assert files_told({"snapshots": snapshots}) == 0


WHOLE = {"total-data-files": "7", "total-delete-files": "2", "total-files-size": "900"}


def test_the_present_snapshot_says_how_large_the_table_is() -> None:
    said = document({**WHOLE, "total-files-size": "1"}, WHOLE)
    assert live_size(said, "1") == Tally(9, 900)
    assert live_size(document({"total-data-files": "7", "total-files-size": "900"}), "0") == Tally(7, 900)
    assert live_size(said, None) == Tally()


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("garbage", ["-5", "", "1e9", None, [], 7, "9" * 5_000, "٣", " 7", "+7"])
def test_a_size_that_is_not_told_is_unknown_and_not_none_at_all(name: str, garbage: object) -> None:
    assert live_size(document({**WHOLE, name: garbage}), "0") is None


@pytest.mark.parametrize("summary", [None, "?", {}, {"operation": "append"}, {"total-data-files": "7"}])
def test_a_summary_may_leave_the_size_out(summary: object) -> None:
    assert live_size(document(summary), "0") is None
    assert live_size(document(summary), "8") is None


@pytest.mark.parametrize(("count", "large"), [(2_000_000, False), (2_000_001, True)])
def test_the_border_is_where_it_is_said_to_be(tmp_path: Path, count: int, large: bool) -> None:
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t")
    table.append(1)
    table_format = IcebergFormat(ObjectStores())
    state = table_format.load("t", table.publish())
    state.document["snapshots"][0]["summary"] = {"total-data-files": str(count)}
    assert is_large(state, table_format) is large
