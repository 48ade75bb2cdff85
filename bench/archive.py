"""How the memory of a hand-over grows from 100 to 10,000 data files, on threads.

.venv/bin/python bench/archive.py

A table of one snapshot with so many small files, and one after it; the first is handed to a tier on the same disk by a
process of its own, whose most memory is measured. Exits 1 where that grows faster than it may.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import yaml
from parts.measuring import machine
from parts.reporting import FOLDER
from pyiceberg.catalog.sql import SqlCatalog

FILES = (100, 1_000, 10_000)
MEMORY_EXPONENT = 0.15
"""A hundred times the files take no more than twice the memory: threads and their buffers, and the rows of a walk."""
SCHEMA = pa.schema([("x", pa.int64())])


def lake(folder: Path, files: int) -> None:
    """Writes the table, and the configuration of both catalogs and of the tier."""
    live = {"type": "sql", "uri": f"sqlite:///{folder}/live.db", "warehouse": f"file://{folder}/live"}
    cold = {"type": "sql", "uri": f"sqlite:///{folder}/cold.db"}
    (folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"lake": live, "cold": cold}}))
    (folder / "firnline.yaml").write_text(f"archive: cold\ntiers: {{cold: {{root: 'file://{folder}/cold'}}}}\n")
    catalog = SqlCatalog("lake", **live)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA)
    table.add_files([_written(folder, number) for number in range(files)])
    table.append(pa.table({"x": pa.array([1], pa.int64())}))
    catalog.close()


def _written(folder: Path, number: int) -> str:
    import pyarrow.parquet as pq

    file = folder / "live" / "db" / "t" / "data" / f"{number:05d}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"x": pa.array([number], pa.int64())}, SCHEMA), file)
    return f"file://{file}"


def handed_over(folder: Path) -> dict[str, float]:
    """Hands over in this process. Returns its seconds, its most memory in MiB and the files that it copied."""
    from firnline.lake import open_lake

    started = time.perf_counter()
    done = open_lake(str(folder / "firnline.yaml"), engine="local").archive(
        "lake.db.t", retain_last=1, older_than=_now()
    )
    seconds = time.perf_counter() - started
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": round(seconds, 2), "mib": round(most, 1), "files": done.copied.files}


def _now() -> int:
    return int(time.time() * 1000)


def measured(files: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        lake(folder, files)
        child = [sys.executable, __file__, "--hand-over", str(folder)]
        told = subprocess.run(child, env={"PYICEBERG_HOME": place, "HOME": place}, check=True, stdout=subprocess.PIPE)
        found: dict[str, float] = json.loads(told.stdout)
    print(f"{files:>7,} files: {found['seconds']:7.2f} s, {found['mib']:7.1f} MiB", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hand-over", metavar="FOLDER", help="used by the benchmark itself")
    folder = parser.parse_args().hand_over
    if folder:
        print(json.dumps(handed_over(Path(folder))))
        return 0
    found = {files: measured(files) for files in FILES}
    exponent = math.log(found[FILES[-1]]["mib"] / found[FILES[0]]["mib"]) / math.log(FILES[-1] / FILES[0])
    holds = exponent <= MEMORY_EXPONENT
    print(f"memory exponent over files {exponent:.2f}, at most {MEMORY_EXPONENT}: {'yes' if holds else 'NO'}")
    answer = {"found": found, "exponent": round(exponent, 3), "machine": machine()}
    (FOLDER / "archive.json").write_text(json.dumps(answer, indent=1) + "\n")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
