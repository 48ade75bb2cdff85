"""How fast a history of expired snapshots is written, read and moved on, as one list and in segments.

.venv/bin/python bench/history.py [snapshots]
"""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firnline.history.listing import Entry, read_list
from firnline.history.names import HistoryPointer
from firnline.history.opening import History, expired_entries, read_index, read_segment
from firnline.history.revise import LONGEST_LIST, Wish, laid_out, revise
from firnline.stores.objects import ObjectStores

STORE = ObjectStores()
BATCH = 1_000


def entries(first: int, number: int) -> list[Entry]:
    """Returns snapshots as Spark writes them, one a minute."""
    return [
        {
            "sequence-number": each,
            "snapshot-id": 3_000_000_000_000_000_000 + each,
            "parent-snapshot-id": 3_000_000_000_000_000_000 + each - 1,
            "timestamp-ms": 1_700_000_000_000 + each * 60_000,
            "summary": {
                "operation": "append", "spark.app.id": "application_1700000000000_0042", "added-data-files": "4",
                "added-records": "120000", "added-files-size": "18400311", "changed-partition-count": "1",
                "total-records": str(each * 120_000), "total-files-size": str(each * 18_400_311),
                "total-data-files": str(each * 4), "total-delete-files": "0", "total-position-deletes": "0",
                "total-equality-deletes": "0", "engine-version": "4.1.0", "app-id": "application_1700000000000_0042",
                "engine-name": "spark", "iceberg-version": "Apache Iceberg 1.12.0",
            },
            "manifest-list": f"s3://lake/events/metadata/snap-{3 * 10**18 + each}-1-0b6c2f4e-aaaa-bbbb-cccc.avro",
            "schema-id": 0,
        }
        for each in range(first, first + number)
    ]  # fmt: skip


@contextmanager
def timed(what: str, number: int) -> Iterator[None]:
    start, busy = time.perf_counter(), time.process_time()
    yield
    spent, busy = time.perf_counter() - start, time.process_time() - busy
    print(f"{what:32} {spent:8.2f} s, {busy:8.2f} s busy, {number / busy:10,.0f} snapshots a busy second", flush=True)


def write(folder: Path, longest: int, number: int) -> tuple[HistoryPointer, History]:
    """Writes a history of so many snapshots in one go, as a first expiry of a neglected table would."""
    wish = Wish(entries(0, number))
    with timed("  write", number):
        pointer, objects = laid_out(revise([], (), lambda segment: [], wish), str(folder), longest)
        for key, data in objects.items():
            STORE.put_if_absent(key, data)
    largest = max(map(len, objects.values()))
    total = sum(map(len, objects.values()))
    print(f"  {len(objects)} objects, {total / 1e6:,.0f} MB, the largest {largest / 1e6:,.0f} MB")
    segments = () if pointer.index is None else read_index(STORE, pointer.index)
    return pointer, History((pointer.path,), segments)


def move_on(folder: Path, pointer: HistoryPointer, history: History, longest: int, number: int) -> None:
    """Adds a batch: what every later commit costs."""
    with timed(f"  a commit with {BATCH:,} more", BATCH):
        wish = Wish(entries(number, BATCH), bound_ms=0)
        newest = read_list(STORE, pointer.path)
        revision = revise(newest, history.segments, lambda each: read_segment(STORE, each), wish)
        _, objects = laid_out(revision, str(folder), longest)
        for key, data in objects.items():
            STORE.put_if_absent(key, data)


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    for what, longest in (("in segments", LONGEST_LIST), ("as one list", 1 << 60)):
        folder = Path(tempfile.mkdtemp(prefix="firnline-bench-history-"))
        try:
            print(f"{number:,} snapshots {what}")
            pointer, history = write(folder, longest, number)
            with timed("  read and count", number):
                assert sum(1 for _ in expired_entries(STORE, history, frozenset())) == number
            move_on(folder, pointer, history, longest, number)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"  peak memory of the process so far {peak:,.0f} MiB")
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
