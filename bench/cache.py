"""What a hit costs against opening the unit and decoding it, on one core; the same manifests, warm files.

.venv/bin/python bench/cache.py [entries per manifest] [manifests]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from firnline.caches.disk import DiskCache
from firnline.caches.expand import CachedExpand, look_up
from firnline.caches.seal import Seal
from firnline.formats.iceberg.expand import IcebergExpand
from firnline.model.files import File, FileKind
from firnline.model.portions import portions
from firnline.stores.objects import ObjectStores
from firnline.testing.manifests import AvroLayout, Entry, Item, Status

LEAST_GAIN = 3.0


def manifests(folder: Path, number: int, entries: int) -> list[File]:
    """Writes manifests whose paths look like Spark's, without statistics: the least that decoding can cost."""
    layout, units = AvroLayout(2), []
    for each in range(number):
        names = (f"s3://lake/events/data/day={each}/{n:05d}-{each * entries + n}-0b6c.parquet" for n in range(entries))
        rows = [Entry(Status.ADDED, Item(name, 1_000_000), 1) for name in names]
        data = layout.manifest(rows, deletes=False)
        path = folder / f"{each:05d}-m0.avro"
        path.write_bytes(data)
        units.append(File(FileKind.MANIFEST, f"file://{path}", len(data), opens=True))
    return units


def timed(what: str, units: list[File], call: Callable[[list[File]], object]) -> float:
    """Seconds for each unit, in portions as an engine asks for them."""
    start = time.perf_counter()
    for portion in portions(units):
        if call(portion) is None:
            raise AssertionError(f"{what}: nothing was found")
    each = (time.perf_counter() - start) / len(units)
    print(f"{what:28} {each * 1e6:10.0f} µs a unit")
    return each


def main() -> None:
    entries, number = (int(each) for each in (sys.argv[1:] + ["1000", "200"][len(sys.argv) - 1 :])[:2])
    folder = Path(tempfile.mkdtemp())
    try:
        units = manifests(folder, number, entries)
        expand = IcebergExpand(ObjectStores())
        cached = CachedExpand(
            expand, "iceberg", DiskCache(str(folder / "cache")), Seal(b"bench"), look_up(ObjectStores(), units), 60
        )
        for _ in range(2):  # the first time compiled loops are loaded
            opening = timed("opened and decoded", units, expand)
        timed("the same, and remembered", units, cached)
        hit = timed("recalled", units, cached.recalled)
        stored = sum(path.stat().st_size for path in (folder / "cache").rglob("*") if path.is_file())
        print(
            f"{stored / number / entries:.1f} bytes an entry remembered; to recall is {opening / hit:.1f} times faster"
        )
        sys.exit(opening / hit < LEAST_GAIN)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
