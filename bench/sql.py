"""How long `all_snapshots` takes over a long history, next to Iceberg's own `snapshots` table on the same snapshots.

.venv/bin/python bench/sql.py [snapshots]

firnline reads them as expired snapshots, in segments on executors; Iceberg has them all in one metadata document, which
the driver reads. Both in one session, each question asked twice: the second time nothing is loaded or compiled anew.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from firnline.app import open_lake
from firnline.history.index import Segment, digest_of, index_bytes
from firnline.history.listing import bytes_of, text_of, time_of
from firnline.history.names import INDEX, PATH
from firnline.sql.runtime import PACKAGE
from firnline.testing.manifests import Layout
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
    made = SmallTable(QuickFiles(), f"file://{folder}/remembers", Layout(2))
    made.append(1)
    uuid: list[str] = []
    made.publish(edit=lambda document: uuid.append(document["table-uuid"]))
    said = remember(folder / "remembers" / "_firnline" / "history" / uuid[0], number)
    made.publish(edit=lambda document: document["properties"].update(said))
    return made.location


def holding(folder: Path, number: int) -> str:
    """Returns the metadata of a table that has the same snapshots live: what Iceberg can show."""
    made = SmallTable(QuickFiles(), f"file://{folder}/holds", Layout(2))
    made.append(1)

    def fill(document: dict[str, Any]) -> None:
        document["snapshots"] += entries(FIRST, number)
        document["last-sequence-number"] = FIRST + number

    return made.publish(edit=fill)


def timed(what: str, number: int, ask: Callable[[], Any]) -> None:
    for which in ("first", "again"):
        start = time.perf_counter()
        found = ask()
        spent = time.perf_counter() - start
        print(f"{what:44} {which}: {spent:7.1f} s, {number / spent:10,.0f} snapshots/s, answer {found}", flush=True)


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    os.environ["FIRNLINE_SPARK_PACKAGES"] = PACKAGE
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--driver-memory 6g --master local[*] pyspark-shell"
    folder = Path(tempfile.mkdtemp(prefix="firnline-bench-sql-"))
    try:
        compare(folder, number)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(folder: Path, number: int) -> None:
    from firnline.spark.session import session
    from firnline.sql.session import Statements, prepared

    ours, theirs = remembering(folder, number), holding(folder, number)
    spark = prepared(session())
    statements = Statements(open_lake(), spark)
    name = f"`{ours}`.all_snapshots"
    spark.read.format("iceberg").load(f"{theirs}#snapshots").createOrReplaceTempView("snapshots")

    def ask(text: str) -> Any:
        (frame,) = statements.run(text)
        return frame.collect()[0][0]

    late = entries(FIRST + number - 1, 1)[0]["timestamp-ms"] - 60_000_000
    bound = f"committed_at > timestamp_millis({late})"
    added = "sum(summary['added-records'])"
    for what, select, where in (
        ("count", "count(*)", ""),
        ("sum of a summary", added, ""),
        ("the last", "count(*)", bound),
    ):
        filtered = f" WHERE {where}" if where else ""
        timed(f"firnline all_snapshots, {what}", number, lambda s=select, f=filtered: ask(f"SELECT {s} FROM {name}{f}"))
        plain = f"SELECT {select} FROM snapshots{filtered}"
        timed(f"Iceberg snapshots, {what}", number, lambda p=plain: spark.sql(p).collect()[0][0])


if __name__ == "__main__":
    main()
