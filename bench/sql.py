"""How long `all_snapshots` takes over a long history, next to Iceberg's own `snapshots` table on the same snapshots.

.venv/bin/python bench/sql.py [snapshots]

firnline reads them as expired snapshots, in segments on executors; Iceberg has them all in one metadata document, which
the driver reads. Both in one session. firnline is asked each question twice: the second time nothing is loaded or
compiled anew. Iceberg is asked to count, once: that takes minutes, and a second count more of them, because its driver
has no memory left. Writes docs/benchmarks/sql.json. Exits 1 if the answers differ or if our first count takes longer.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from parts.measuring import Memory, machine
from parts.reporting import FOLDER

from firnline.formats.iceberg.runtime import PACKAGE
from firnline.history.listing import bytes_of, text_of, time_of
from firnline.history.names import INDEX, PATH
from firnline.history.opening import Segment, digest_of, index_bytes
from firnline.lake import open_lake
from firnline.testing.manifests import AvroLayout
from firnline.testing.tables import QuickFiles, SmallTable
from history import entries

FIRST = 1_000
"""The number of the first snapshot; those before it are the tables' own."""

SEGMENT = 45_000
"""Snapshots of 740 bytes in a segment of 32 MiB."""


def remember(folder: Path, number: int) -> dict[str, str]:
    """Returns the properties of a table that remembers so many snapshots."""
    folder.mkdir(parents=True)
    *older, newest = range(FIRST, FIRST + number, SEGMENT)
    segments = [_segment(folder, first, SEGMENT) for first in older]
    (folder / "index-0a.json").write_bytes(index_bytes(segments))
    (folder / "expired-snapshots-0b.json").write_bytes(bytes_of(map(text_of, entries(newest, FIRST + number - newest))))
    return {PATH: str(folder / "expired-snapshots-0b.json"), INDEX: str(folder / "index-0a.json")}


def _segment(folder: Path, first: int, number: int) -> Segment:
    part = entries(first, number)
    data = bytes_of(map(text_of, part))
    path = folder / f"segment-{digest_of(data)}.json"
    path.write_bytes(data)
    return Segment(str(path), number, len(data), time_of(part[0]), time_of(part[-1]), digest_of(data))


def remembering(folder: Path, number: int) -> str:
    """Returns the location of a table with one live snapshot and so many expired ones."""
    made = SmallTable(QuickFiles(), f"file://{folder}/remembers", AvroLayout(2))
    made.append(1)
    uuid: list[str] = []
    made.publish(edit=lambda document: uuid.append(document["table-uuid"]))
    said = remember(folder / "remembers" / "_firnline" / "history" / uuid[0], number)
    made.publish(edit=lambda document: document["properties"].update(said))
    return made.location


def holding(folder: Path, number: int) -> str:
    """Returns the metadata of a table that has the same snapshots live: what Iceberg can show."""
    made = SmallTable(QuickFiles(), f"file://{folder}/holds", AvroLayout(2))
    made.append(1)

    def fill(document: dict[str, Any]) -> None:
        document["snapshots"] += entries(FIRST, number)
        document["last-sequence-number"] = FIRST + number

    return made.publish(edit=fill)


QUESTIONS = {
    "count": ("count(*)", ""),
    "sum of a summary": ("sum(summary['added-records'])", ""),
    "the last thousand": ("count(*)", " WHERE committed_at > timestamp_millis({late})"),
}


def timed(what: str, number: int, turns: Sequence[str], ask: Callable[[], Any]) -> dict[str, Any]:
    """Returns how long the question took in each turn, and its answer."""
    spent = []
    for which in turns:
        start = time.perf_counter()
        found = ask()
        spent.append(round(time.perf_counter() - start, 2))
        rate = number / spent[-1]
        print(f"{what:44} {which}: {spent[-1]:7.1f} s, {rate:10,.0f} snapshots/s, answer {found}", flush=True)
    return {**{f"{which}_s": each for which, each in zip(turns, spent, strict=True)}, "answer": found}


@contextmanager
def watched(memory: Memory) -> Iterator[None]:
    """Looks at the memory of this process and of all that it started, until the block ends."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.5):
            memory.look(os.getpid())

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    yield
    over.set()
    watcher.join()


def asked(
    name: str, number: int, ask: Callable[[str], Any], table: str, questions: Iterable[str], turns: Sequence[str]
) -> dict[str, Any]:
    """Returns what one side took for these questions, and the memory that it had at most."""
    late = entries(FIRST + number - 1, 1)[0]["timestamp-ms"] - 60_000_000
    memory, found = Memory(), {}
    with watched(memory):
        for what in questions:
            select, where = QUESTIONS[what]
            text = f"SELECT {select} FROM {table}{where.format(late=late)}"
            found[what] = timed(f"{name}, {what}", number, turns, partial(ask, text))
    print(f"{name}: most memory in MiB {memory.as_mib()}", flush=True)
    return {**found, "rss_mib": memory.as_mib()}


def main() -> int:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    os.environ["FIRNLINE_SPARK_PACKAGES"] = PACKAGE
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--driver-memory 10g --master local[*] pyspark-shell"
    folder = Path(tempfile.mkdtemp(prefix="firnline-bench-sql-"))
    try:
        return compare(folder, number)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(folder: Path, number: int) -> int:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as apart:  # what it needs for them is not ours
        ours, theirs = (apart.submit(make, folder, number).result() for make in (remembering, holding))
    from firnline.spark.session import session
    from firnline.sql.session import StatementAnswer, prepared

    spark = prepared(session())
    lake = open_lake()

    def ask(text: str) -> Any:
        (frame,) = lake.sql(text)
        assert not isinstance(frame, StatementAnswer), frame
        return frame.collect()[0][0]

    both = ("first", "again")
    remembered = asked("firnline all_snapshots", number, ask, f"`{ours}`.all_snapshots", QUESTIONS, both)
    spark.read.format("iceberg").load(f"{theirs}#snapshots").createOrReplaceTempView("snapshots")
    theirs_says = asked(
        "Iceberg snapshots", number, lambda text: spark.sql(text).collect()[0][0], "snapshots", ["count"], both[:1]
    )
    answer = {"snapshots": number, "firnline": remembered, "iceberg": theirs_says, "machine": machine()}
    (FOLDER / "sql.json").write_text(json.dumps(answer, indent=1) + "\n")
    count, theirs_count = remembered["count"], theirs_says["count"]
    return 0 if count["answer"] == theirs_count["answer"] and count["first_s"] < theirs_count["first_s"] else 1


if __name__ == "__main__":
    sys.exit(main())
