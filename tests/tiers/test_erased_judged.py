"""After an erasure, Spark with Iceberg 1.12.0 reads every snapshot, live and cold, as before without the file's rows:
with deletes by position, by value and by vector, with partitions, evolved columns and the numbers of rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.servers.fixtures import unique
from tests.judge.jvm import ICEBERG
from tests.tiers.grown import GrownTable, grow, grow_first
from tests.tiers.java_spark import JavaSpark
from tests.tiers.shores import Shore, on_files

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("tiers-spark")]
_LINEAGE = ("_row_id", "_last_updated_sequence_number")
Rows = dict[int, list[str]]


@pytest.fixture
def shore(tmp_path: Path, spark: JavaSpark, monkeypatch: pytest.MonkeyPatch) -> Shore:
    made = on_files(unique("erased").replace("-", "_"), tmp_path)
    made.configure(monkeypatch)
    made.add_to(spark)
    return made


def _rows(spark: JavaSpark, table: str, *, lineage: bool = True) -> Rows:
    """Returns the rows of every snapshot, each with the data file that it lies in and, in version 3, its numbers."""
    spark.refresh(table)
    more = "".join(f", {each}" for each in (_LINEAGE if lineage else ()))
    found: Rows = {}
    for each in [each.snapshotId() for each in spark.table(table).snapshots()]:
        told = spark.sql(f"SELECT to_json(struct(*)) AS row, _file{more} FROM {table} VERSION AS OF {each}")
        found[each] = sorted(json.dumps(row, sort_keys=True) for row in told)
    return found


def _without(rows: Rows, files: Iterable[str]) -> Rows:
    gone = {each.rpartition("/")[2] for each in files}
    return {
        snapshot: [row for row in told if json.loads(row)["_file"].rpartition("/")[2] not in gone]
        for snapshot, told in rows.items()
    }


def _below(rows: Rows) -> Rows:
    """Returns the rows with the bare names of their files: in a tier they lie elsewhere."""
    named = {
        each: [{**json.loads(row), "_file": json.loads(row)["_file"].rpartition("/")[2]} for row in told]
        for each, told in rows.items()
    }
    return {each: sorted(json.dumps(row, sort_keys=True) for row in told) for each, told in named.items()}


def _files(spark: JavaSpark, table: str) -> list[str]:
    """Returns the data files of all snapshots, those that most of them have first."""
    found = spark.sql(f"SELECT file_path, count(*) AS n FROM {table}.all_data_files GROUP BY 1 ORDER BY n DESC, 1")
    return [row["file_path"] for row in found]


def _erase(shore: Shore, *files: str) -> dict[str, Any]:
    formal = ("--case", "RIGHT-17", "--by", "A. Person", "--grace", "0s", "--yes")
    told = shore.firnline("erase", shore.live_table(), *files, *formal)
    assert told["done"], told
    return told


@pytest.mark.full
def test_every_snapshot_is_read_without_the_rows_of_the_file(shore: Shore, spark: JavaSpark) -> None:
    live, cold = shore.live_table(), shore.cold_table()
    table = GrownTable(spark, live)
    table.create()
    grow_first(table)
    grow(table)
    before = _rows(spark, live)
    files = _files(spark, live)
    first = files[:: max(1, len(files) // 4)]
    assert len(first) >= 4
    _erase(shore, *first)
    after = _rows(spark, live)
    assert after == _without(before, first), f"Iceberg {ICEBERG} reads other rows"
    assert after != before
    assert shore.firnline("check", live)["sound"]
    table.insert()
    table.delete()
    after = _rows(spark, live)

    shore.expire("local")
    second = [each for each in files if each not in first][:: max(1, len(files) // 3)]
    _erase(shore, *second)
    expected = _below(_without(after, second))
    left = _below(_rows(spark, live))
    assert left == {each: expected[each] for each in left}
    handed = _below(_rows(spark, cold))
    assert len(handed) > len(left)
    assert handed == {each: expected[each] for each in handed}
    for each in (live, cold):
        assert shore.firnline("check", each)["sound"], each


@pytest.mark.full
def test_rows_keep_their_numbers(shore: Shore, spark: JavaSpark) -> None:
    """Entries of a manifest have no numbers of their own until it is written anew: each begins where the last ended."""
    live = shore.live_table("numbered")
    spark.sql(f"CREATE TABLE {live} (id BIGINT) PARTITIONED BY (id) TBLPROPERTIES ('format-version' = '3')")
    spark.sql(f"INSERT INTO {live} VALUES (0), (1), (2), (3), (4), (5)")
    spark.sql(f"INSERT INTO {live} VALUES (6), (7)")
    before = _rows(spark, live)
    newest = [json.loads(row) for row in before[spark.table(live).currentSnapshot().snapshotId()]]
    numbered = sorted((row["_row_id"], row["_file"]) for row in newest)
    assert [number for number, _ in numbered] == list(range(8))
    gone = [path for number, path in numbered if number in (0, 1, 3)]
    formal = ("--case", "RIGHT-17", "--by", "A. Person", "--grace", "0s", "--yes")
    assert shore.firnline("erase", live, *gone, *formal)["done"]
    assert _rows(spark, live) == _without(before, gone)
    spark.sql(f"INSERT INTO {live} VALUES (8)")
    spark.sql(f"CALL {shore.lake_name}.system.rewrite_manifests(table => 'db.numbered', use_caching => false)")
    spark.refresh(live)
    told = spark.sql(f"SELECT id, _row_id FROM {live} ORDER BY _row_id")
    left = [number for number, path in numbered if path not in gone]
    assert [row["_row_id"] for row in told] == [*left, 8]
