"""A table of July 2024 whose snapshots of that month expired long ago, and the questions of the proposal about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import yaml
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField

from demo.backdate import SetClock, pyiceberg_clock
from demo.proposal import questions
from firnline.lake import open_lake

SCHEMA = Schema(NestedField(1, "day", DateType()), NestedField(2, "x", LongType()))
SPEC = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
TABLE = "ns.events"
KEPT, REMOVED = date(2024, 7, 15), date(2024, 7, 16)


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Facts:
    """What the questions are about, noted while the table was made."""

    folder: Path
    file: str
    removing: int
    adding: int
    added_at: str
    added_bytes: int
    metadata: str

    def questions(self, snapshots: str, entries: str) -> dict[str, str]:
        """Returns the proposal's queries on these two tables; each answers in its first column."""
        said = {"table.snapshots": snapshots, "table.entries": entries, "/my/path.parquet": self.file}
        return questions({**said, f"partitions.day={KEPT}": f"partitions.day={REMOVED}"})

    @property
    def answers(self) -> dict[str, object]:
        return {
            "file added": self.added_at,
            "by application": "application_0001",
            "partition added": self.added_at,
            "partition removed": self.removing,
            "commits": 3,
            "files": 2.0,
            "records removed": 5.0,
            "bytes": float(self.added_bytes),
        }


def rows(day: date, number: int) -> pa.Table:
    columns = [pa.array([day] * number, pa.date32()), pa.array(range(number), pa.int64())]
    return pa.table(columns, names=["day", "x"])


def build(folder: Path) -> Facts:
    """Returns what happened: two files in July, one of them removed again; August; then all of July expired."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    (folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"lake": settings}}))
    catalog = SqlCatalog("lake", **settings)
    with pyiceberg_clock(SetClock(at("2024-07-01"))) as clock:
        catalog.create_namespace("ns")
        properties = {"write.summary.partition-limit": "10"}
        table = catalog.create_table(TABLE, SCHEMA, partition_spec=SPEC, properties=properties)
        _live(table, clock)
    facts = _noted(folder, table)
    catalog.close()
    return facts


def _live(table: Table, clock: SetClock) -> None:
    clock.now_ms = at("2024-07-02")
    table.append(rows(KEPT, 3), snapshot_properties={"spark.app.id": "application_0001"})
    clock.now_ms = at("2024-07-05")
    table.append(rows(REMOVED, 5), snapshot_properties={"spark.app.id": "application_0002"})
    clock.now_ms = at("2024-07-20")
    table.delete("day = '2024-07-16'")
    for month in ("2024-08-01", "2024-08-02"):
        clock.now_ms = at(month)
        table.append(rows(date.fromisoformat(month), 1))


def _noted(folder: Path, table: Table) -> Facts:
    snapshots = table.metadata.snapshots
    added = [each.summary for each in snapshots[:2] if each.summary is not None]
    files = table.inspect.files().to_pylist()
    return Facts(
        folder=folder,
        file=next(each["file_path"] for each in files if each["partition"]["day"] == KEPT),
        removing=snapshots[2].snapshot_id,
        adding=snapshots[0].snapshot_id,
        added_at=instant(snapshots[0].timestamp_ms),
        added_bytes=sum(int(each["added-files-size"] or 0) for each in added),
        metadata=table.metadata_location,
    )


def expire() -> None:
    """Expires all but the newest snapshot, remembered forever, and purges at once."""
    lake = open_lake(engine="local")
    bound = at("2024-08-03")
    lake.expire(TABLE, older_than=bound, retain_last=1, keep={"history": "forever"}, grace="0s", blast_radius=1.0)
