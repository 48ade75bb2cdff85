"""One command for a lake of many tables of a middling size: against one command for each, and against Iceberg's action.

.venv/bin/python bench/lake.py [tables]

Every table has 100 snapshots and 1,000 files; the older half is planned away. `firnline plan --all` is one process.
Table by table is `firnline plan TABLE`, a process for each, over a sample; Iceberg's action finds the files of the same
sample in one warm session. All are reckoned by the time of a table: the first plan of all with an empty cache, and
later ones with what earlier plans left there. 100 tables unless told, 1,000 with FIRNLINE_BENCH=large.
Exits 1 if a ratio misses its floor, if the victims differ, or if memory grows from a tenth of the tables, or two passes
of them, by more than the tables' own metadata.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import pyarrow.parquet
import yaml
from parts.child import digest
from parts.measuring import machine, measured
from parts.reporting import Line, save, table
from pyiceberg.catalog.sql import SqlCatalog

from firnline.app.lake_wide.plans import TABLES_ON_THREADS
from harness.large.tables import START_MS, STEP_MS, LargeShape, LargeTable

SHAPE = LargeShape(100, 10, live=60, cadence=5, refs=3)
LAST = SHAPE.snapshots // 2
AGAINST_ACTION, AGAINST_ALONE = 20.0, 3.0
SAMPLE = 6
MEMORY = "2g"
OF_ROOTS = 4.0
"""A table's document, read and kept as values while the page of all tables is made, takes so many times its size."""


def build(folder: Path, tables: int) -> int:
    """Writes the tables and registers them. Returns the bytes of their documents."""
    settings = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    (folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"lake": settings}}))
    catalog = SqlCatalog("lake", **settings)
    catalog.create_namespace("db")
    size = 0
    for number in range(tables):
        made = LargeTable(folder / "warehouse" / "db" / f"t{number}", SHAPE)
        made.write()
        own = made.folder / "metadata" / f"00001-{uuid4()}.metadata.json"  # as writers of such a catalog name it
        shutil.copy(made.folder / "metadata" / "v1.metadata.json", own)
        size += own.stat().st_size
        catalog.register_table(f"db.t{number}", f"file://{own}")
    catalog.close()
    return size


def command(folder: Path, cache: str, *words: str) -> tuple[float, dict[str, Any], int]:
    """Returns the seconds of a command, what it said, and the most memory that it held."""
    told = {"PYICEBERG_HOME": str(folder), "FIRNLINE_CACHE": str(folder / cache), "FIRNLINE_CACHE_KEY": "b" * 32}
    asked = ["--older-than", str(START_MS + LAST * STEP_MS + 1), "--retain-last", "1", "--json"]
    begun = time.perf_counter()
    program = str(Path(sys.executable).with_name("firnline"))
    with subprocess.Popen(
        [program, "plan", *words, *asked], env={**os.environ, **told}, cwd=folder, stdout=subprocess.PIPE, text=True
    ) as child:
        said = child.stdout.read() if child.stdout else ""
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{words} ended with {child.returncode}")
    return time.perf_counter() - begun, json.loads(said), used.ru_maxrss * 1024


def agree(said: dict[str, Any], tables: int) -> None:
    """Raises AssertionError unless every table has the victims that its shape has."""
    wanted = {kind: files for kind, files in SHAPE.victims(LAST).items() if files}
    for each in said["tables"]:
        found = {kind: tally["files"] for kind, tally in each["victims"]["by_kind"].items() if tally["files"]}
        assert found == wanted, (each["table"], found, wanted)
    assert said["sums"]["tables"] == tables


def by_the_action(folder: Path) -> tuple[float, set[str]]:
    """Returns the seconds of a table in a warm session, and the digests of what it found."""
    told = measured("iceberg-plan", folder / "warehouse", "t{}", LAST, SAMPLE, MEMORY)
    rounds = told["rounds"]
    return median(each["seconds"] for each in rounds[1:]), {each["digest"] for each in rounds}


def digests(folder: Path) -> set[str]:
    """Returns what firnline finds of the same sample, by its catalog: a path would be another table beside that one."""
    found = set()
    for number in range(SAMPLE):
        out = folder / f"t{number}.parquet"
        command(folder, "cache", f"lake.db.t{number}", "--files", str(out))
        found.add(digest(pyarrow.parquet.read_table(out).column("path").to_pylist()))
    return found


def main() -> int:
    large = os.environ.get("FIRNLINE_BENCH") == "large"
    tables = int(sys.argv[1]) if len(sys.argv) > 1 else (1_000 if large else 100)
    with tempfile.TemporaryDirectory(prefix="firnline-lake-") as name:
        folder = Path(name)
        roots = build(folder, tables)
        first_s, said, _ = command(folder, "cache", "--all")
        agree(said, tables)
        lake_s, _, most = command(folder, "cache", "--all")
        tenth = [f"lake.db.t{number}" for number in range(max(2 * TABLES_ON_THREADS, tables // 10))]
        _, _, few = command(folder, "cache", *tenth)
        alone_s = median(command(folder, "cache", f"lake.db.t{number}")[0] for number in range(SAMPLE))
        action_s, theirs = by_the_action(folder)
        same = digests(folder) == theirs
    lines = [
        Line(f"{tables:,} tables for the first time, against the action", first_s / tables, action_s, AGAINST_ACTION),
        Line(f"{tables:,} tables, against the action table by table", lake_s / tables, action_s, AGAINST_ACTION),
        Line(f"{tables:,} tables, against a command for each", lake_s / tables, alone_s, AGAINST_ALONE),
    ]
    grown, allowed = most - few, OF_ROOTS * roots
    print(f"first plan of all {first_s:.1f} s, later {lake_s:.1f} s; memory {few >> 20} MiB for {len(tenth)} tables,")
    print(
        f"{most >> 20} MiB for {tables}: grown by {grown >> 20} MiB of {int(allowed) >> 20} allowed; same files: {same}"
    )
    memory = {"few": few, "many": most, "roots": roots}
    save("lake", lines, {"machine": machine(), "first_s": first_s, "memory": memory})
    print(table(lines))
    return 0 if same and grown <= allowed and all(each.holds for each in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
