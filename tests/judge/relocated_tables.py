"""Tables that Spark with Iceberg writes, read at every snapshot before they are relocated and after, when the live ones
are gone: python relocated_tables.py FOLDER JARS ANSWER.json, in a process of its own.

The answer is `{table: {"kinds": […], "before": {snapshot: [row, …]}, "cold": {…}, "careless": {…}, …}}`; `careless` is
the newest snapshot of a copy in which the files of deletes were left as they are. It also says where both copies lie.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from firnline.formats.iceberg.expand import IcebergExpand
from firnline.formats.iceberg.relocating import IcebergRelocation
from firnline.model.files import File, FileKind
from firnline.ports.relocating import Relocate
from firnline.stores.objects import ObjectStores
from firnline.tiers.places import TierPlaces

Rows = dict[str, list[dict[str, Any]]]
LINEAGE = ("_row_id", "_last_updated_sequence_number")


def session(folder: Path, jars: str) -> SparkSession:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings: Any = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",  # the tables are tiny: compiling takes longer than reading
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.log.level": "ERROR",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "live"),
        "spark.sql.catalog.lake.cache-enabled": "false",
    }
    return SparkSession.builder.master("local[1]").appName("relocated").config(map=settings).getOrCreate()


# ---------------------------------------------------------------- tables


@dataclass(frozen=True)
class LiveTable:
    """A table in Spark's catalog, with rows of an id, a text and a group."""

    spark: SparkSession
    folder: Path
    name: str

    @property
    def path(self) -> Path:
        return self.folder / "live" / "db" / self.name

    @property
    def document(self) -> dict[str, Any]:
        version = (self.path / "metadata" / "version-hint.text").read_text()
        found: dict[str, Any] = json.loads((self.path / "metadata" / f"v{version}.metadata.json").read_bytes())
        return found

    def sql(self, statement: str) -> None:
        self.spark.sql(statement.replace("THIS", f"lake.db.{self.name}"))

    def create(self, version: int, partitioned: str = "", **properties: str) -> None:
        modes = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}
        told = {
            "format-version": str(version),
            **modes,
            **{key.replace("_", "."): properties[key] for key in properties},
        }
        listed = ", ".join(f"'{key}'='{value}'" for key, value in told.items())
        self.sql(
            f"CREATE TABLE THIS (id BIGINT, name STRING, part INT) USING iceberg {partitioned} TBLPROPERTIES ({listed})"
        )

    def append(self, first: int, more: str = "") -> None:
        """Adds 12 rows in one file per group."""
        rows = f"SELECT id, concat('n', id), CAST(id % 3 AS INT){more} FROM range({first}, {first + 12}, 1, 1)"
        self.sql(f"INSERT INTO THIS {rows}")

    def delete_equal(self, *ids: int) -> None:
        """Adds equality deletes, which Spark cannot write."""
        place = self.path / "data" / f"equal-{ids[0]}.parquet"
        column = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
        pq.write_table(pa.table({"id": list(ids)}, schema=pa.schema([column])), place)
        jvm: Any = self.spark._jvm
        table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            self.spark._jsparkSession, f"lake.db.{self.name}"
        )
        gateway: Any = self.spark.sparkContext._gateway
        numbers = gateway.new_array(jvm.int, 1)
        numbers[0] = 1
        builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofEqualityDeletes(numbers)
        builder = builder.withPath(str(place)).withFileSizeInBytes(place.stat().st_size).withRecordCount(len(ids))
        table.newRowDelta().addDeletes(builder.build()).commit()


def grow_positions(table: LiveTable) -> None:
    """Partitions, and deletes for one file as well as for several; schema and partitions change on the way."""
    table.create(2, "PARTITIONED BY (part)", write_delete_granularity="file")
    table.append(0)
    table.append(12)
    table.sql("DELETE FROM THIS WHERE id IN (1, 2, 13)")
    table.sql("ALTER TABLE THIS SET TBLPROPERTIES ('write.delete.granularity'='partition')")
    table.sql("DELETE FROM THIS WHERE id IN (3, 4, 15, 16)")
    table.sql("ALTER TABLE THIS ADD COLUMN more STRING")
    table.append(24, ", 'x'")
    table.sql("ALTER TABLE THIS SET TBLPROPERTIES ('write.delete.format.default'='avro')")
    table.sql("DELETE FROM THIS WHERE id IN (5, 17, 25)")
    table.sql("ALTER TABLE THIS ADD PARTITION FIELD bucket(2, id)")
    table.append(36, ", 'y'")
    table.sql("UPDATE THIS SET name = 'changed' WHERE id IN (6, 37)")
    table.sql("INSERT OVERWRITE THIS SELECT id, name, part, more FROM THIS WHERE part = 1")
    table.sql("CALL lake.system.rewrite_manifests('db.positions')")
    table.sql("DELETE FROM THIS WHERE id = 7")


def grow_equality(table: LiveTable) -> None:
    table.create(2)
    table.append(0)
    table.delete_equal(1, 2)
    table.append(0)
    table.sql("DELETE FROM THIS WHERE id = 3")
    table.delete_equal(4)
    table.sql("ALTER TABLE THIS RENAME COLUMN name TO called")
    table.append(12)


def grow_vectors(table: LiveTable) -> None:
    """Deletion vectors, several in one Puffin and some replaced by others, and row lineage."""
    table.create(3, "PARTITIONED BY (part)")
    table.append(0)
    table.append(12)
    table.sql("DELETE FROM THIS WHERE id IN (1, 2, 13, 14)")
    table.sql("DELETE FROM THIS WHERE id IN (3, 4)")
    table.sql("UPDATE THIS SET name = 'changed' WHERE id IN (5, 17)")
    table.append(24)
    table.sql("CALL lake.system.rewrite_data_files(table => 'db.vectors', options => map('rewrite-all', 'true'))")
    table.sql("DELETE FROM THIS WHERE id IN (6, 26)")
    table.sql("CALL lake.system.compute_table_stats('db.vectors')")
    table.sql("CALL lake.system.compute_partition_stats('db.vectors')")


def grow_old(table: LiveTable) -> None:
    table.create(1, write_delete_mode="copy-on-write", write_update_mode="copy-on-write")
    table.append(0)
    table.append(12)
    table.sql("DELETE FROM THIS WHERE id IN (1, 13)")


GROWN: dict[str, Callable[[LiveTable], None]] = {
    "positions": grow_positions, "equality": grow_equality, "vectors": grow_vectors, "old": grow_old,
}  # fmt: skip


# ---------------------------------------------------------------- relocating


@dataclass(frozen=True)
class Careless:
    """Rewrites lists and manifests, and leaves the deletes that they name as they are."""

    moving: Relocate

    order = property(lambda self: self.moving.order)
    rewritten = frozenset({FileKind.MANIFEST, FileKind.MANIFEST_LIST})
    relocated = property(lambda self: self.moving.relocated)


def files_of(document: dict[str, Any], store: ObjectStores) -> dict[str, FileKind]:
    """Returns all files that the table's snapshots are made of."""
    units = [File(FileKind.MANIFEST_LIST, each["manifest-list"], opens=True) for each in document["snapshots"]]
    found = {each["statistics-path"]: FileKind.STATISTICS for each in document.get("statistics", ())}
    partitions = document.get("partition-statistics", ())
    found |= {each["statistics-path"]: FileKind.PARTITION_STATISTICS for each in partitions}
    while units:
        rows = [row for unit in units for row in IcebergExpand(store)([unit]).rows.to_pylist()]
        found |= {row["key"]: FileKind(row["kind"]) for row in rows}
        units = [
            File(FileKind(key), path, opens=True) for path, key in {(r["key"], r["kind"]) for r in rows if r["opens"]}
        ]
    return found


def relocate(files: dict[str, FileKind], moving: Relocate, place: TierPlaces, store: ObjectStores) -> None:
    for kind in (kind for group in moving.order for kind in group):
        for path in sorted(path for path, each in files.items() if each is kind):
            data = store.get(path)
            store.put(place.place(path), moving.relocated(kind, path, data) if kind in moving.rewritten else data)


def placed_document(document: dict[str, Any], place: TierPlaces) -> dict[str, Any]:
    def with_place(each: dict[str, Any], name: str) -> dict[str, Any]:
        return {**each, name: place.place(each[name])}

    statistics = {
        name: [with_place(each, "statistics-path") for each in document.get(name, ())]
        for name in ("statistics", "partition-statistics")
    }
    snapshots = [with_place(each, "manifest-list") for each in document["snapshots"]]
    return {**with_place(document, "location"), **statistics, "snapshots": snapshots, "metadata-log": []}


def published(document: dict[str, Any]) -> Path:
    """Returns the folder of a table by path whose only metadata is this."""
    folder = Path(document["location"])
    (folder / "metadata").mkdir(parents=True, exist_ok=True)
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(document))
    (folder / "metadata" / "version-hint.text").write_text("1")
    return folder


# ---------------------------------------------------------------- reading


def rows_at(spark: SparkSession, source: str, document: dict[str, Any], last: int = 0) -> Rows:
    """Returns the rows of each snapshot, or of so many last ones, with their lineage where the table has one."""
    lineage = LINEAGE if document["format-version"] > 2 else ()
    ids = [each["snapshot-id"] for each in document["snapshots"]][-last:]
    return {str(each): _rows(spark, source, each, lineage) for each in ids}


def _rows(spark: SparkSession, source: str, snapshot: int, lineage: tuple[str, ...]) -> list[dict[str, Any]]:
    frame = spark.read.format("iceberg").option("versionAsOf", snapshot).load(source)
    return sorted((row.asDict() for row in frame.select("*", *lineage).collect()), key=str)


def answer(folder: Path, jars: str) -> dict[str, Any]:
    spark, store = session(folder, jars), ObjectStores()
    places = {name: TierPlaces(str(folder / name)) for name in ("cold", "careless")}
    told: dict[str, Any] = {}
    for name, grow in GROWN.items():
        table = LiveTable(spark, folder, name)
        grow(table)
        document = table.document
        files = files_of(document, store)
        told[name] = {"before": rows_at(spark, str(table.path), document), "kinds": sorted(set(files.values()))}
        for called, place in places.items():
            moving = IcebergRelocation(place, store)
            relocate(files, moving if called == "cold" else Careless(moving), place, store)
            told[name][f"{called} table"] = str(published(placed_document(document, place)))
    (folder / "live").rename(folder / "gone")
    for each in told.values():
        for called in places:
            source = each[f"{called} table"]
            document = json.loads((Path(source) / "metadata" / "v1.metadata.json").read_bytes())
            each[called] = rows_at(spark, source, document, last=0 if called == "cold" else 1)
    return told


if __name__ == "__main__":
    Path(sys.argv[3]).write_text(json.dumps(answer(Path(sys.argv[1]), sys.argv[2])))
