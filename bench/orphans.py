"""How long a search for orphans takes: 60,000 files in 4,096 folders, half of them needed by nothing.

firnline's whole search (list, read the table, walk, census) on threads and on a warm Spark session, against Iceberg's
own `remove_orphan_files` (a dry run) in that same session, on the same cores and files. All must name the very same
files. Exits 1 if firnline's own choice for so many files, threads, is less than 20 times as fast, or Spark less than 5.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from firnline.app.places import now_ms
from firnline.formats.iceberg.names import DOCUMENT_NAMES, places_of
from firnline.formats.iceberg.table import IcebergFormat
from firnline.formats.sorting import Sorting
from firnline.local.engine import LocalEngine
from firnline.model.files import File, FileKind, Root
from firnline.model.locations import identity
from firnline.model.times import DAY_MS
from firnline.ops.runs.plan import roots
from firnline.ports.engines import Engine, ServerRoots
from firnline.ports.listings import ObjectClass
from firnline.spark.engine import SparkEngine
from firnline.stores.objects import ObjectStores
from firnline.stores.ranges import ObjectRanges
from firnline.testing.manifests import Item
from firnline.testing.tables import QuickFiles, SmallTable

FLOORS = {"local": 20.0, "spark": 5.0}
"""For this many files firnline takes threads by itself; Spark is for those who ask for it, or have millions."""
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
FILES, FOLDERS, MANIFESTS = 60_000, 4_096, 30
PIECES = 64
OLD_S = 1_700_000_000
CUTOFF = datetime(2025, 1, 1, tzinfo=UTC)
"""For Iceberg, which goes by the time that a file can be given; for firnline everything here is old tomorrow."""


@dataclass(frozen=True)
class Lake:
    """A table `db.NAME` below a warehouse, and how many of its files nothing needs."""

    warehouse: Path
    name: str
    orphans: int

    @property
    def location(self) -> str:
        return f"file://{self.warehouse}/db/{self.name}"


def build(warehouse: Path, name: str, files: int, folders: int, manifests: int) -> Lake:
    """A table of empty data files: every second one is named by its manifests, the others by nothing."""
    table = SmallTable(QuickFiles(), f"file://{warehouse}/db/{name}")
    data = warehouse / "db" / name / "data"
    paths = [data / f"day={number % folders:04d}" / f"{number:06d}.parquet" for number in range(files)]
    for folder in {path.parent for path in paths}:
        folder.mkdir(parents=True)
    for path in paths:
        path.touch()
        os.utime(path, (OLD_S, OLD_S))
    needed = paths[::2]
    share = -(-len(needed) // manifests)
    for start in range(0, len(needed), share):
        table.register([Item(f"file://{path}", 0) for path in needed[start : start + share]])
    table.publish()
    return Lake(warehouse, name, files - len(needed))


def search(engine: Engine, lake: Lake) -> set[str]:
    """Everything that a search does, up to the last victim in the caller's hands."""
    store, source = ObjectStores(), ObjectRanges()
    listing = engine.list(source.split(lake.location, PIECES), source)
    table_format = IcebergFormat(store)
    census = engine.census(listing, [ServerRoots(list(needs(table_format, lake)), table_format.expand)], sorting(lake))
    victims = {each for batch in census.victim_batches() for each in batch.column("identity").to_pylist()}
    assert census.classes[ObjectClass.NEAR_MISS].files == 0
    census.close()
    listing.close()
    return victims


def needs(table_format: IcebergFormat, lake: Lake) -> Iterator[Root]:
    metadata = f"{lake.location}/metadata/v1.metadata.json"
    state = table_format.load(lake.name, metadata)
    yield from roots(table_format, state, set())
    yield Root(File(FileKind.METADATA, metadata), True)


def sorting(lake: Lake) -> Sorting:
    return Sorting(now_ms() + DAY_MS, places_of(lake.location, {}), DOCUMENT_NAMES)


def iceberg(spark: SparkSession, lake: Lake) -> set[str]:
    when = CUTOFF.strftime("%Y-%m-%d %H:%M:%S")
    call = f"CALL lake.system.remove_orphan_files(table => 'db.{lake.name}', older_than => TIMESTAMP '{when}', "
    return {identity(row[0]) for row in spark.sql(f"{call} dry_run => true)").collect()}


def started(warehouse: Path) -> SparkSession:
    """One session for both, with Iceberg's runtime in it."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings: dict[str, bool | float | int | str | None] = {
        "spark.jars.packages": ICEBERG,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 2)),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(warehouse),
    }
    return SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()


def timed(work: Callable[[], set[str]]) -> tuple[float, set[str]]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def measure(folder: Path) -> dict[str, Any]:
    """Seconds of each, after all have found the orphans of a small table: what is measured is not their start."""
    spark = started(folder)
    lake = build(folder, "large", FILES, FOLDERS, MANIFESTS)
    small = build(folder, "small", 400, 20, 4)
    ways: dict[str, Callable[[Lake], set[str]]] = {
        "local": lambda lake: search(LocalEngine(), lake),
        "spark": lambda lake: search(SparkEngine(spark), lake),
        "iceberg": lambda lake: iceberg(spark, lake),
    }
    for name, way in ways.items():
        assert len(way(small)) == small.orphans, name
    seconds, found = {}, {}
    for name, way in ways.items():
        seconds[name], found[name] = timed(lambda way=way: way(lake))  # type: ignore[misc]
    assert len(found["iceberg"]) == lake.orphans
    assert found["local"] == found["spark"] == found["iceberg"]
    ratios = {name: round(seconds["iceberg"] / seconds[name], 1) for name in FLOORS}
    return {"files": FILES, "folders": FOLDERS, "orphans": lake.orphans, "seconds": seconds, "ratios": ratios}


def main() -> int:
    """0 if every ratio reaches the floor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        answer = measure(Path(folder))
    if arguments.json:
        print(json.dumps({"floors": FLOORS, **answer}))
    else:
        print(f"{answer['files']:,} files in {answer['folders']:,} folders, {answer['orphans']:,} orphans")
        for name, spent in answer["seconds"].items():
            ratio = f"{answer['ratios'][name]:>7.1f}×" if name in answer["ratios"] else ""
            print(f"{name:10} {spent:8.2f} s {ratio}")
    return 0 if all(answer["ratios"][name] >= floor for name, floor in FLOORS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
