"""A plan over a million manifest entries of a Paimon table, against one over as many of an Iceberg table.

.venv/bin/python bench/paimon.py [--share N] [--keep FOLDER]

Both tables have one shape, so they have equally many entries, and the older half of their snapshots goes. They are
planned in turns in one process, first on threads and then in one Spark session; the best round of each counts. Exits 1
where Paimon takes more than 1.5 times as long for an entry, by the clock or by CPU time. `--share 10`: a tenth of it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from parts.child import cpu_s, cutoff
from parts.measuring import machine
from parts.reporting import Line, save, table

from firnline.lake import Lake, open_lake
from harness.large.tables import LargeShape, LargeTable
from harness.paimon.large import LargePaimon

SHAPE = LargeShape(1_000, 556, live=200, cadence=8, refs=3)
"""556,000 entries that add a file and 444,800 that remove one."""

FLOOR = 1.5
ROUNDS = 4


def made(folder: Path, shape: LargeShape) -> dict[str, tuple[Path, dict[str, int]]]:
    """Both tables, written unless an earlier run left them there, each with the number of its right victims."""
    paimon, iceberg = LargePaimon(folder / "paimon", shape), LargeTable(folder / "iceberg", shape)
    if not (paimon.folder / "snapshot").exists():
        paimon.write()
        iceberg.write()
    last = shape.snapshots // 2
    return {"paimon": (paimon.folder, paimon.victims(last)), "iceberg": (iceberg.folder, shape.victims(last))}


def planned(lake: Lake, place: Path, victims: dict[str, int], shape: LargeShape) -> dict[str, float]:
    """What one plan took. Raises where it names another number of victims."""
    start, spent = time.perf_counter(), cpu_s()
    view = lake.plan(str(place), older_than=cutoff(shape.snapshots // 2), retain_last=1)
    took = {"seconds": time.perf_counter() - start, "cpu_s": cpu_s() - spent}
    found = {str(kind): tally.files for kind, tally in view.plan.victims.by_kind.items()}
    assert view.planned.survey is not None
    view.planned.survey.close()
    if found != victims:
        raise AssertionError(f"{place.name}: {found}, expected {victims}")
    return took


def compared(engine: str, tables: dict[str, tuple[Path, dict[str, int]]], shape: LargeShape) -> tuple[list[Line], Any]:
    """Plans both in turns. The first round warms up and does not count."""
    lake = open_lake(engine=engine)
    rounds = [{name: planned(lake, *each, shape) for name, each in tables.items()} for _ in range(ROUNDS)]
    entries = LargePaimon(Path(), shape).entries()
    best = {
        name: {what: min(each[name][what] for each in rounds[1:]) for what in ("seconds", "cpu_s")} for name in tables
    }
    for name, took in best.items():
        rates = [entries / took[what] for what in ("seconds", "cpu_s")]
        print(f"{engine:6} {name:8} {rates[0]:10,.0f} entries/s, {rates[1]:10,.0f} per CPU second", flush=True)
    ours, theirs = best["paimon"], best["iceberg"]
    names = {"seconds": "by the clock", "cpu_s": "CPU time"}
    lines = [
        Line(f"{entries:,} entries, {engine}, {said}", ours[what], theirs[what], FLOOR, at_most=True)
        for what, said in names.items()
    ]
    return lines, {"entries": entries, "rounds": rounds}


@contextmanager
def folder_at(keep: str | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(keep).resolve() if keep else Path(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=int, default=1, metavar="N", help="measure one N-th of it; saves nothing")
    parser.add_argument("--keep", metavar="FOLDER", help="write the tables there and leave them")
    parser.add_argument("--engine", choices=("local", "spark"), help="only this one")
    arguments = parser.parse_args()
    os.environ["FIRNLINE_CACHE"] = "off"
    shape = replace(SHAPE, snapshots=SHAPE.snapshots // arguments.share, live=SHAPE.live // arguments.share)
    lines: list[Line] = []
    details: dict[str, Any] = {"machine": machine()}
    with folder_at(arguments.keep) as folder:
        tables = made(folder, shape)
        for engine in [arguments.engine] if arguments.engine else ["local", "spark"]:
            found, details[engine] = compared(engine, tables, shape)
            lines += found
    print(table(lines))
    if arguments.share == 1 and not arguments.engine:
        save("paimon", lines, details)
    return 0 if all(line.holds for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
