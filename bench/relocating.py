"""How long it takes to rewrite the paths of a table's history: 200 snapshots, each with a manifest of 100 files and
a file of position deletes.

firnline on one thread (walk the table, read, rewrite and write every list, manifest and file of deletes) against
Iceberg's own `rewrite_table_path` in a warm Spark session with all cores, on the same table. Both must name the very
same files in the other place. Exits 1 if firnline is less than 5 times as fast.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from parts.session import started
from pyspark.sql import SparkSession

from firnline.formats.avro import decode
from firnline.formats.iceberg.expand import IcebergExpand
from firnline.formats.iceberg.relocating import IcebergRelocation
from firnline.model.files import File, FileKind
from firnline.stores.objects import ObjectStores
from firnline.testing.manifests import Content, Item
from firnline.testing.tables import QuickFiles, SmallTable
from firnline.tiers.places import TierPlaces

FLOOR = 5.0
SNAPSHOTS, FILES, POSITIONS = 200, 100, 1_000
_ID = "PARQUET:field_id"
_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={_ID: "2147483546"}),
        pa.field("pos", pa.int64(), nullable=False, metadata={_ID: "2147483545"}),
    ]
)


@dataclass(frozen=True)
class History:
    """A table `db.NAME` below a warehouse, and the folder that it is rewritten for."""

    warehouse: Path
    name: str
    lists: tuple[str, ...]

    @property
    def location(self) -> str:
        return f"{self.warehouse}/db/{self.name}"

    @property
    def place(self) -> TierPlaces:
        return TierPlaces(f"{self.warehouse}/cold")


def build(warehouse: Path, name: str, snapshots: int) -> History:
    """A table of data files that are not there: nobody opens them."""
    table = SmallTable(QuickFiles(), f"{warehouse}/db/{name}")
    for number in range(snapshots):
        paths = [f"{table.location}/data/day={number:04d}/{each:05d}.parquet" for each in range(FILES)]
        table.register([*(Item(path, 1 << 20) for path in paths), deletes(table, number, paths)])
    place = table.publish()
    document = json.loads(Path(place).read_bytes())
    return History(warehouse, name, tuple(each["manifest-list"] for each in document["snapshots"]))


def deletes(table: SmallTable, number: int, paths: list[str]) -> Item:
    named = sorted(paths[each % len(paths)] for each in range(POSITIONS))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"file_path": named, "pos": list(range(POSITIONS))}, schema=_DELETES), sink)
    place, data = f"{table.location}/data/deletes-{number:04d}.parquet", bytes(sink.getvalue())
    table.store.put(place, data)
    return Item(place, len(data), Content.POSITION_DELETES)


def ours(history: History) -> set[str]:
    """Returns the paths in the manifests of the other place."""
    store = ObjectStores()
    moving, quick, named = IcebergRelocation(history.place, store), QuickFiles(), set[str]()
    files = walked(history, store)
    for kind in (kind for group in moving.order for kind in group if kind in moving.rewritten):
        for path in sorted(path for path, each in files.items() if each is kind):
            written = moving.relocated(kind, path, store.get(path))
            quick.put(history.place.place(path), written)
            named |= paths_in(written) if kind is FileKind.MANIFEST else set()
    return named


def walked(history: History, store: ObjectStores) -> dict[str, FileKind]:
    expand, found = IcebergExpand(store), dict[str, FileKind]()
    units = [File(FileKind.MANIFEST_LIST, path, opens=True) for path in history.lists]
    while units:
        rows = expand(units).rows.to_pylist()
        found |= {row["key"]: FileKind(row["kind"]) for row in rows}
        opens = {row["key"]: row["kind"] for row in rows if row["opens"]}
        units = [File(FileKind(kind), path, opens=True) for path, kind in opens.items()]
    return found


def theirs(spark: SparkSession, history: History) -> set[str]:
    """Returns the paths in the manifests that Iceberg lays down."""
    staging = history.warehouse / "staging" / history.name
    prefixes = f"'{history.location}', target_prefix => '{history.place.place(history.location)}'"
    call = f"table => 'db.{history.name}', source_prefix => {prefixes}, staging_location => '{staging}'"
    spark.sql(f"CALL lake.system.rewrite_table_path({call})").collect()
    return {path for file in staging.rglob("*-manifest.avro") for path in paths_in(file.read_bytes())}


def paths_in(manifest: bytes) -> set[str]:
    name = "data_file.file_path"
    return set(decode(manifest, {name: pa.string()}).batch.column(name).to_pylist())


def timed(work: Callable[[], set[str]]) -> tuple[float, set[str]]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def measure(folder: Path) -> dict[str, Any]:
    """Seconds of each, after both have rewritten a small table: what is measured is not their start."""
    spark = started(folder, "2g")
    small, large = build(folder, "small", 8), build(folder, "large", SNAPSHOTS)
    assert ours(small) == theirs(spark, small)
    (firnline, here), (iceberg, there) = timed(lambda: ours(large)), timed(lambda: theirs(spark, large))
    assert len(here) == SNAPSHOTS * (FILES + 1)
    assert here == there
    return {"seconds": {"firnline": firnline, "iceberg": iceberg}, "ratio": round(iceberg / firnline, 1)}


def main() -> int:
    """0 if the ratio reaches the floor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        answer = measure(Path(folder))
    if arguments.json:
        print(json.dumps({"floor": FLOOR, **answer}))
    else:
        print(f"{SNAPSHOTS} snapshots, {SNAPSHOTS * FILES:,} files, {SNAPSHOTS} of deletes")
        for name, spent in answer["seconds"].items():
            print(f"{name:10} {spent:8.2f} s")
        print(f"{answer['ratio']:.1f}×, at least {FLOOR:g}")
    return 0 if answer["ratio"] >= FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
