"""The list of what goes says the size of every file as it is on disk, and the plan their sum."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from firnline.errors import UsageError
from firnline.testing.faults import Answer, PortRequest
from harness.disks import no_file_above
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import plain
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon

from .small import EVERYTHING_OLD, Copy, quick_folder, row
from .worlds import grown

SEEDS = range(60 if os.environ.get("FIRNLINE_FULL") else 4)
INDEXED = {"file-index.bloom-filter.columns": "v", "file-index.in-manifest-threshold": "1 b"}
LAST_OLD: dict[str, Any] = {**EVERYTHING_OLD, "retain_last": 1}


@pytest.fixture
def indexed(both: Paimon) -> Iterator[Copy]:
    """A table with indexes beside its data files and with statistics, of which no metadata tells the size."""
    copy = Copy(quick_folder())
    table = JavaTable(both.java, copy.folder / "t")
    table.create(Shape("java", True, ("p",), {"bucket": "1", "changelog-producer": "input", **INDEXED}))
    for number in range(3):
        table.write(MAIN, [row(number, "once"), row(1, f"again {number}")])
        table.analyze(MAIN)
    table.write(MAIN, [row(5, "five")], {})
    table.write(MAIN, [row(6, "six")])
    yield copy
    copy.end()


def _listed(copy: Copy, out: Path) -> dict[str, int | None]:
    """Returns the sizes by path. Their sum is what the plan says."""
    plan = copy.process().plan(copy.table, **LAST_OLD, files=out).to_json()
    rows = pq.read_table(out).to_pylist()
    assert plan["victims"]["files"] == len(rows)
    assert plan["victims"]["bytes"] == sum(each["size"] or 0 for each in rows)
    return {plain(each["path"]): each["size"] for each in rows}


def _on_disk(path: str) -> int | None:
    return Path(path).stat().st_size if Path(path).exists() else None


def test_every_listed_size_is_that_of_the_file(indexed: Copy, tmp_path: Path) -> None:
    listed = _listed(indexed, tmp_path / "list.parquet")
    assert any(path.endswith(".index") for path in listed)
    assert any("/statistics/stat-" in path for path in listed)
    assert listed == {path: _on_disk(path) for path in listed}
    freed = indexed.expire(**LAST_OLD).outcomes["deleted"]
    assert freed.bytes == sum(size or 0 for size in listed.values())


@pytest.mark.full
def test_so_it_is_in_random_tables(both: Paimon, tmp_path: Path) -> None:
    for seed in SEEDS:
        with grown(both, seed) as world:
            listed = _listed(Copy(world.root), tmp_path / f"{seed}.parquet")
            assert listed == {path: _on_disk(path) for path in listed}, seed


class Asked:
    """Notes which objects the store is asked about."""

    def __init__(self) -> None:
        self.heads: list[str] = []

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if request.verb == "head":
            self.heads.append(request.key)
        return request.send()


def test_the_store_is_asked_for_no_size_of_what_stays(indexed: Copy, tmp_path: Path) -> None:
    asked = Asked()
    indexed.process(asked).plan(indexed.table, **LAST_OLD)
    unsized = {key for key in asked.heads if key.endswith(".index") or "/statistics/" in key}
    assert unsized <= _listed(indexed, tmp_path / "list.parquet").keys()


def test_a_plan_without_room_for_its_sizes_says_so_and_leaves_nothing_behind(
    indexed: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with no_file_above(64), pytest.raises(UsageError, match="cannot write to") as full:
        indexed.process().plan(indexed.table, **LAST_OLD)
    assert "TMPDIR" in full.value.hint
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="nowhere") as nowhere:
        indexed.process().plan(indexed.table, **LAST_OLD)
    assert "TMPDIR" in nowhere.value.hint


def test_a_list_that_finds_no_room_says_so_and_leaves_nothing_behind(indexed: Copy, tmp_path: Path) -> None:
    view = indexed.process().plan(indexed.table, **LAST_OLD)
    with no_file_above(64), pytest.raises(UsageError, match="cannot write to"):
        view.write_files(tmp_path / "list.csv")
    assert list(tmp_path.iterdir()) == []
