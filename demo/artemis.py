"""The three tables of the demo lake, each with what happens to it on one day of its life."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, DoubleType, LongType, NestedField, StringType, TimestamptzType

from demo.backdate import SetClock

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SHELLS = ("leo", "meo", "geo", "heo")
OBJECTS_PER_SHELL = 1_500
READINGS_PER_COMMIT = 1_200
FAULTY = 17

REGISTRY_SCHEMA = Schema(
    NestedField(1, "object_id", LongType()),
    NestedField(2, "shell", StringType()),
    NestedField(3, "name", StringType()),
    NestedField(4, "perigee_km", DoubleType()),
    NestedField(5, "apogee_km", DoubleType()),
    NestedField(6, "seen_at", TimestamptzType()),
)
REGISTRY_SPEC = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "shell"))
TELEMETRY_SCHEMA = Schema(
    NestedField(1, "object_id", LongType()),
    NestedField(2, "at", TimestamptzType()),
    NestedField(3, "day", DateType()),
    NestedField(4, "signal_db", DoubleType()),
    NestedField(5, "temperature_k", DoubleType()),
)
TELEMETRY_SPEC = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "day"))
CONFIG_SCHEMA = Schema(NestedField(1, "key", StringType()), NestedField(2, "value", StringType()))

# Many small commits leave many small manifests; merging them is what a real writer does. And it notes which partitions
# a commit touched.
MERGE = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "12"}
NOTED = {"write.summary.partition-limit": "10"}


@dataclass
class Scene:
    """The lake while it is made: its catalog, its clock, how many days it gets, and one source of numbers."""

    catalog: Catalog
    clock: SetClock
    days: int
    numbers: np.random.Generator = field(default_factory=lambda: np.random.default_rng(20))

    def is_day(self, day: int, share: float) -> bool:
        """True on the one day that lies this share of the way through."""
        return day == int(self.days * share)

    def date(self, days_ago: int = 0) -> str:
        return datetime.fromtimestamp((self.clock.now_ms - days_ago * DAY_MS) / 1000, UTC).date().isoformat()


def instants(milliseconds: np.ndarray) -> pa.Array:
    return pa.array(milliseconds * 1000, pa.timestamp("us", tz="UTC"))


def objects(scene: Scene, shell: str) -> pa.Table:
    """One shell of the registry as it was measured at the clock's time."""
    first = SHELLS.index(shell) * 1_000_000
    ids = np.arange(first, first + OBJECTS_PER_SHELL)
    perigee = scene.numbers.uniform(200, 36_000, ids.size)
    columns = {
        "object_id": pa.array(ids, pa.int64()),
        "shell": pa.array([shell] * ids.size, pa.string()),
        "name": pa.array([f"{shell}-{number:07d}" for number in ids], pa.string()),
        "perigee_km": pa.array(perigee),
        "apogee_km": pa.array(perigee + scene.numbers.uniform(0, 900, ids.size)),
        "seen_at": instants(np.full(ids.size, scene.clock.now_ms)),
    }
    return pa.table(columns)


def readings(scene: Scene) -> pa.Table:
    """A batch of telemetry: mostly of the last hours, a little of it a day late, one of the faulty object.

    That one lies in the middle, so that a file with it always holds others too, whatever the hour.
    """
    ids = scene.numbers.integers(FAULTY + 1, 500, READINGS_PER_COMMIT)
    ids[READINGS_PER_COMMIT // 2] = FAULTY
    age = scene.numbers.integers(0, 3 * HOUR_MS, READINGS_PER_COMMIT)
    age[: READINGS_PER_COMMIT // 50] += DAY_MS
    at = instants(np.sort(scene.clock.now_ms - age))
    columns = {
        "object_id": pa.array(ids, pa.int64()),
        "at": at,
        "day": at.cast(pa.timestamp("us")).cast(pa.date32(), safe=False),
        "signal_db": pa.array(scene.numbers.normal(-90, 8, READINGS_PER_COMMIT)),
        "temperature_k": pa.array(scene.numbers.normal(270, 25, READINGS_PER_COMMIT)),
    }
    return pa.table(columns)


def head(table: Table) -> int:
    """The id of the current snapshot of a table that has one."""
    current = table.current_snapshot()
    assert current is not None
    return current.snapshot_id


def registry(scene: Scene) -> Iterator[None]:
    """Each day one shell is measured again and replaces what was there; each week all are rewritten."""
    table = scene.catalog.create_table("artemis.registry", REGISTRY_SCHEMA, partition_spec=REGISTRY_SPEC)
    table.append(pa.concat_tables([objects(scene, shell) for shell in SHELLS]))
    for day in range(scene.days):
        if day % 7 == 6:
            table.overwrite(table.scan().to_arrow(), snapshot_properties={"written-by": "compaction"})
        else:
            table.dynamic_partition_overwrite(objects(scene, SHELLS[day % 4]))
        tag_registry(scene, table, day)
        yield


def tag_registry(scene: Scene, table: Table, day: int) -> None:
    """A tag every 30 days, two that an audit asked for, and one whose own retention ended long ago."""
    if day % 30 == 0:
        table.manage_snapshots().create_tag(head(table), f"monthly-{scene.date()}").commit()
    if scene.is_day(day, 0.15) or scene.is_day(day, 0.75):
        table.manage_snapshots().create_tag(head(table), f"audit-{scene.date()}").commit()
    if scene.is_day(day, 0.3):
        table.manage_snapshots().create_tag(head(table), "candidate", max_ref_age_ms=7 * DAY_MS).commit()


def telemetry(scene: Scene) -> Iterator[None]:
    """Appended to once a day, and every eight hours in the last fortnight; with corrections and accidents."""
    table = scene.catalog.create_table(
        "artemis.telemetry", TELEMETRY_SCHEMA, partition_spec=TELEMETRY_SPEC, properties={**MERGE, **NOTED}
    )
    for day in range(scene.days):
        start = scene.clock.now_ms
        for hours in (0, 8, 16) if day >= scene.days - 14 else (0,):
            scene.clock.now_ms = start + hours * HOUR_MS
            table.append(readings(scene), snapshot_properties={"spark.app.id": f"ingest-{scene.date()}-{hours:02d}"})
        if day % 7 == 3:
            table.delete(f"object_id = {FAULTY} and day >= '{scene.date(days_ago=2)}'")
        branch_telemetry(scene, table, day)
        spoil_telemetry(scene, table, day)
        yield


def branch_telemetry(scene: Scene, table: Table, day: int) -> None:
    """A branch with three commits and a retention of its own."""
    if not scene.is_day(day, 0.6):
        return
    table.manage_snapshots().create_branch(head(table), "experiment").commit()
    for _ in range(3):
        table.append(readings(scene), branch="experiment")
    # Set last: PyIceberg's commits to a branch drop the retention that the branch had.
    retention = {"max_snapshot_age_ms": 10 * DAY_MS, "min_snapshots_to_keep": 2}
    tip = table.metadata.refs["experiment"].snapshot_id
    table.manage_snapshots().create_branch(tip, "experiment", **retention).commit()


def spoil_telemetry(scene: Scene, table: Table, day: int) -> None:
    """One commit that was staged and never published; one that was published by mistake and rolled back."""
    if scene.is_day(day, 0.8):
        table.append(readings(scene), branch=None)
    if scene.is_day(day, 0.85):
        good = head(table)
        table.append(readings(scene), snapshot_properties={"written-by": "mistake"})
        table.manage_snapshots().rollback_to_snapshot(good).commit()


def config(scene: Scene) -> Iterator[None]:
    """Changes every twelfth day, as a whole."""
    table = scene.catalog.create_table("artemis.config", CONFIG_SCHEMA)
    for day in range(scene.days):
        if day % 12 == 0:
            write = table.overwrite if day else table.append
            rows = [{"key": f"limit.{n}", "value": str(n * day)} for n in range(40)]
            write(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
        yield
