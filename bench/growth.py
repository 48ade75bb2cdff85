"""How time and memory of a plan grow from 100,000 to two million files in 100,000 snapshots, on Spark.

.venv/bin/python bench/growth.py [--keep FOLDER]

The larger table is the smaller one, longer: the same 20 files a commit, about 45 manifests a list, 50 tags. Exits 1
where the largest takes more memory than it may, or where time or the memory of the driver grow faster than they may.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from parts.measuring import machine, measured
from parts.reporting import FOLDER

from harness.large.tables import SHAPES, LargeTable

SNAPSHOTS = (5_000, 20_000, 100_000)
HEAP = "2g"
DRIVER_MIB, JVM_MIB = 1024, 4096
TIME_EXPONENT, MEMORY_EXPONENT = 1.1, 0.3


def planned(warehouse: Path, snapshots: int) -> dict[str, Any]:
    """What a plan told that takes the older half away, as a process of its own; what it found must be right."""
    shape = replace(SHAPES["wide"], snapshots=snapshots)
    name = f"wide_{snapshots}"
    table = LargeTable(warehouse / "db" / name, shape)
    if not (table.folder / "metadata" / "version-hint.text").exists():
        table.write()
    told = measured("firnline-count", warehouse, name, snapshots // 2, 1, HEAP)
    (found,) = told["rounds"]
    expected = sum(shape.victims(snapshots // 2).values())
    if found["victims"] != expected:
        raise AssertionError(f"{found['victims']} victims, expected {expected}")
    print(f"{snapshots:>9,} snapshots, {snapshots * shape.files:>9,} files: {found['seconds']:7.1f} s", end="")
    print(f", most memory in MiB {told['rss_mib']}", flush=True)
    return {"snapshots": snapshots, "files": snapshots * shape.files, **told}


def exponent(sizes: list[float], values: list[float]) -> float:
    """The slope of the values over the sizes, both as logarithms: 1 where they grow alike."""
    xs, ys = ([math.log(each) for each in every] for every in (sizes, values))
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def judged(plans: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Each figure, and what it may be at most."""
    files = [float(each["files"]) for each in plans]
    times = [float(each["rounds"][0]["seconds"]) for each in plans]
    memory = [float(each["rss_mib"]["driver"]) for each in plans]
    largest = plans[-1]["rss_mib"]
    return {
        "time exponent over files": (round(exponent(files, times), 2), TIME_EXPONENT),
        "time exponent, the last step": (round(exponent(files[-2:], times[-2:]), 2), TIME_EXPONENT),
        "driver memory exponent over files": (round(exponent(files, memory), 2), MEMORY_EXPONENT),
        "driver, MiB": (largest["driver"], DRIVER_MIB),
        "JVM, MiB": (largest["jvm"], JVM_MIB),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", metavar="FOLDER", help="write the tables there and leave them")
    keep = parser.parse_args().keep
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory() as folder:
        plans = [planned(Path(folder).resolve(), snapshots) for snapshots in SNAPSHOTS]
    found = judged(plans)
    for what, (value, most) in found.items():
        print(f"{what:36} {value:8.2f}  at most {most:g}  {'yes' if value <= most else 'NO'}")
    answer = {"plans": plans, "judged": found, "machine": machine()}
    (FOLDER / "growth.json").write_text(json.dumps(answer, indent=1) + "\n")
    return 0 if all(value <= most for value, most in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
