"""The rows of every snapshot as two engines read them: what a tier must give back is what live gave before."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

from pyiceberg.table import Table

from tests.tiers.java_spark import JavaSpark

Rows = list[str]
_AT_ONCE = 12
_LINEAGE = ("_row_id", "_last_updated_sequence_number")


def spark_rows(spark: JavaSpark, table: str, versions: Mapping[str, str], *, lineage: bool = False) -> dict[str, Rows]:
    """Returns the rows of each version, by the name that `versions` has for it; its values are clauses of SQL.
    `lineage` asks for the columns of version 3 too.
    """
    found: dict[str, Rows] = {name: [] for name in versions}
    names = list(versions)
    for start in range(0, len(names), _AT_ONCE):
        legs = (_leg(name, f"{table} {versions[name]}", lineage) for name in names[start : start + _AT_ONCE])
        for row in spark.sql(" UNION ALL ".join(legs)):
            said = {**row, "row": json.loads(row["row"])}
            found[said.pop("version")].append(json.dumps(said, sort_keys=True))
    return {name: sorted(rows) for name, rows in found.items()}


def _leg(name: str, version: str, lineage: bool) -> str:
    more = "".join(f", {each}" for each in _LINEAGE) if lineage else ""
    row = "to_json(struct(*), map('ignoreNullFields', 'false')) AS row"
    return f"SELECT '{name}' AS version, {row}{more} FROM {version}"


def by_id(snapshots: Iterable[int]) -> dict[str, str]:
    return {str(each): f"VERSION AS OF {each}" for each in snapshots}


def by_time(times: Iterable[int]) -> dict[str, str]:
    return {str(each): f"TIMESTAMP AS OF timestamp_millis({each})" for each in times}


def by_name(refs: Iterable[str]) -> dict[str, str]:
    return {each: f"VERSION AS OF '{each}'" for each in refs}


def pyiceberg_rows(table: Table) -> tuple[dict[int, Rows], Counter[str]]:
    """Returns the rows of the snapshots that PyIceberg can read, and why it cannot read the others."""
    found: dict[int, Rows] = {}
    cannot: Counter[str] = Counter()
    for each in table.snapshots():
        try:
            read = table.scan(snapshot_id=each.snapshot_id).to_arrow().to_pylist()
        except (ValueError, NotImplementedError) as refused:
            cannot[f"{type(refused).__name__}: {refused}"] += 1
            continue
        found[each.snapshot_id] = sorted(json.dumps(row, sort_keys=True) for row in read)
    return found, cannot


def without_lineage(rows: Rows) -> Rows:
    """Returns rows of Spark as PyIceberg gives them."""
    return sorted(json.dumps(json.loads(row)["row"], sort_keys=True) for row in rows)


def as_of(spark: JavaSpark, table: str, times: Iterable[int]) -> dict[int, int]:
    """Returns the snapshot that time travel finds at each instant."""
    found, java = spark.jvm.iceberg("util.SnapshotUtil"), spark.table(table)
    return {at: found.snapshotIdAsOfTime(java, at) for at in times}
