"""A table that went through all that an Iceberg table goes through, written by Spark and by Iceberg's Java API."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import count, cycle
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from tests.tiers.java_spark import JavaSpark

MERGE_ON_READ = ", ".join(f"'write.{verb}.mode' = 'merge-on-read'" for verb in ("delete", "update", "merge"))
DIRECT = ", ".join(f"'write{verb}.distribution-mode' = 'none'" for verb in ("", ".delete", ".update"))
"""No shuffles: the tables are tiny."""
KEPT = "kept"
Step = Callable[[], object]


class GrownTable:
    """One table. Each method makes one change; those that commit a snapshot leave one on main unless they say else."""

    def __init__(self, spark: JavaSpark, name: str) -> None:
        self.spark = spark
        self.name = name
        self._numbers = count(1)
        self._newest = 0
        self._version = 1

    @property
    def java(self) -> Any:
        return self.spark.table(self.name)

    def create(self, version: int = 1) -> None:
        self._version = version
        self._sql(
            f"CREATE TABLE {self.name} (id BIGINT, p STRING, n INT, gone STRING) USING iceberg PARTITIONED BY (p)"
            f" TBLPROPERTIES ('format-version' = '{version}', 'write.delete.granularity' = 'partition',"
            f" {DIRECT})"
        )

    # ------------------------------------------------------------ rows

    def insert(self, into: str = "") -> None:
        columns = self._columns()
        rows = ", ".join(self._row(columns) for _ in range(4))
        self._sql(f"INSERT INTO {self.name}{into} ({', '.join(columns)}) VALUES {rows}")

    def overwrite(self) -> None:
        columns = self._columns()
        self._sql(f"INSERT OVERWRITE {self.name} ({', '.join(columns)}) VALUES {self._row(columns)}")

    def delete(self) -> None:
        """Deletes one row: by its position in version 2, by a vector in version 3, else by writing its file anew."""
        self._sql(f"DELETE FROM {self.name} WHERE id = {self._newest}")

    def update(self) -> None:
        self._sql(f"UPDATE {self.name} SET n = n + 1 WHERE id % 3 = 0 OR id = {self._newest - 1}")

    def delete_by_value(self) -> None:
        """Deletes rows by their ids, as a streaming writer does that never reads: Spark has no words for it."""
        table = self.java
        path = f"{table.location()}/data/{uuid4()}-equality.parquet"
        data = _ids_file([self._newest - 2, next(self._numbers)])
        with_deletes = self._equality_deletes(table, path, len(data))
        stream = table.io().newOutputFile(path).create()
        stream.write(data)
        stream.close()
        table.newRowDelta().addDeletes(with_deletes).commit()

    def _equality_deletes(self, table: Any, path: str, size: int) -> Any:
        """Returns deletes of the whole table: those of a spec without fields hold for every partition."""
        jvm = self.spark.jvm
        specs = {each: table.specs().get(each) for each in table.specs()}
        whole = next(spec for spec in specs.values() if spec.isUnpartitioned())
        ids = jvm.gateway.new_array(jvm.gateway.jvm.int, 1)
        ids[0] = 1
        builder = jvm.iceberg("FileMetadata").deleteFileBuilder(whole).ofEqualityDeletes(ids)
        return builder.withPath(path).withFormat("parquet").withFileSizeInBytes(size).withRecordCount(2).build()

    # ------------------------------------------------------------ maintenance

    def rewrite_manifests(self) -> None:
        """Rewrites them by Iceberg's action, which clusters them by partition."""
        self._call(f"rewrite_manifests(table => '{self._short}', use_caching => false)")

    def compact(self) -> None:
        options = "map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')"
        self._call(f"rewrite_data_files(table => '{self._short}', options => {options})")

    def statistics(self) -> None:
        """Makes statistics of both kinds for the current snapshot; no snapshot."""
        for kind in ("table", "partition"):
            self._call(f"compute_{kind}_stats(table => '{self._short}')")

    def tag(self) -> None:
        """Names the current snapshot, for a time that is over at once."""
        self._name("createTag", f"tag-{next(self._numbers)}")

    def keep(self) -> None:
        """Names the current snapshot for ever."""
        table = self.java
        table.manageSnapshots().createTag(KEPT, table.currentSnapshot().snapshotId()).commit()

    def branch(self) -> None:
        """Commits a snapshot on a branch of its own, which goes with it."""
        name = f"branch_{next(self._numbers)}"
        self._name("createBranch", name)
        self.insert(f".branch_{name}")

    def _name(self, make: str, name: str) -> None:
        table = self.java
        update = getattr(table.manageSnapshots(), make)(name, table.currentSnapshot().snapshotId())
        update.setMaxRefAgeMs(name, 1).commit()

    # ------------------------------------------------------------ evolution

    def upgrade(self) -> None:
        self._version += 1
        self.alter(f"SET TBLPROPERTIES ('format-version' = '{self._version}', {MERGE_ON_READ})")

    def alter(self, change: str) -> None:
        self._sql(f"ALTER TABLE {self.name} {change}")

    # ------------------------------------------------------------ parts

    @property
    def _short(self) -> str:
        return self.name.partition(".")[2]

    def _sql(self, statement: str) -> list[dict[str, Any]]:
        return self.spark.sql(statement)

    def _call(self, procedure: str) -> None:
        self._sql(f"CALL {self.name.partition('.')[0]}.system.{procedure}")

    def _columns(self) -> dict[str, str]:
        columns = self.java.schema().columns()
        return {each.name(): each.type().toString() for each in columns}

    def _row(self, columns: dict[str, str]) -> str:
        self._newest = number = next(self._numbers)
        values = (f"'{'ab'[number % 2]}'" if kind == "string" else str(number) for kind in columns.values())
        return f"({', '.join(values)})"


def grow_first(table: GrownTable) -> None:
    """Takes a table that was just created through the changes of format version 1."""
    table.insert()
    table.alter("ADD COLUMN extra INT")
    table.insert()
    table.tag()
    table.overwrite()
    table.insert()


def grow(table: GrownTable, snapshots: int = 0) -> None:
    """Takes it on through every kind of change, in each later version that has it, until it has so many snapshots."""
    for step in _script(table):
        step()
    steps = cycle(_rounds(table))
    while len(list(table.java.snapshots())) < snapshots:
        next(steps)()


def _script(table: GrownTable) -> list[Step]:
    alter = table.alter
    second: list[Step] = [
        table.upgrade, table.delete, table.update, lambda: alter("DROP PARTITION FIELD p"), table.insert,
        lambda: alter("ALTER COLUMN n TYPE BIGINT"), lambda: alter("RENAME COLUMN extra TO more"),
        lambda: alter("DROP COLUMN gone"), table.branch, table.rewrite_manifests, table.compact, table.upgrade,
    ]  # fmt: skip
    third: list[Step] = [
        lambda: alter("ADD PARTITION FIELD bucket(2, id)"), table.insert, table.delete, table.keep, table.update,
        table.statistics, table.tag, table.insert, table.delete_by_value, table.delete, table.insert,
    ]  # fmt: skip
    return [*second, *third]


def _rounds(table: GrownTable) -> list[Step]:
    """Returns changes that can be made again and again in format version 3."""
    return [
        table.insert, table.delete, table.update, table.tag, table.insert, table.delete, table.delete_by_value,
        table.rewrite_manifests, table.insert, table.branch, table.compact, table.insert, table.delete, table.insert,
    ]  # fmt: skip


def _ids_file(ids: list[int]) -> bytes:
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    sink = io.BytesIO()
    pq.write_table(pa.table([pa.array(ids, pa.int64())], schema=pa.schema([field])), sink)
    return sink.getvalue()
