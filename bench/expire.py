"""A plan and a whole expiry on Spark, against the action of Iceberg 1.12.0: one machine, the same settings and cores.

.venv/bin/python bench/expire.py [--keep FOLDER]

Shape A always; with FIRNLINE_BENCH=large also shape B, and the second plan after 1 % of it changed. Each tool gets a
process of its own: from its start to its first result is cold, the same work for the third time is warm. Both must
find the very same files. Exits 1 where a ratio is below its floor.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from parts.measuring import machine, measured
from parts.reporting import Line, rounds_table, save, table

from firnline.caches.packs import opened, rows_in
from harness.large.tables import SHAPES, LargeShape, LargeTable

OWN_FLOORS = {"A": (10.0, 4.0), "B": (6.0, 3.0)}
"""Of a plan as `firnline plan` makes it, warm and cold, against the action: on threads, its own choice for them."""

ALONE_FLOORS = {"A": (6.0, 4.0), "B": (3.0, 3.0)}
"""Of the same against the part of the action that finds files and deletes none."""

SPARK_FLOORS = {"A": (3.0, 1.5), "B": (1.5, 1.5)}
"""Of a plan on Spark, which firnline chooses for larger tables, against that part."""

THREADS_CEILING = 1.5
"""Of a plan on Spark against the same plan on threads of the same cores: at most, in a plain session that is in use.
The record has the same of a session with Iceberg's runtime, whose rules look at every query.
"""

FIRST_CEILING = 1.0
"""Of the first plan on a session that firnline starts, with all it takes to start: at most what a plain session takes
to start, and one and a half times the first plan on threads.
"""

WHOLE_FLOORS = {"A": (6.0, 6.0)}
"""Of plan, commit and deletes, warm and cold, against the action."""

ROUNDS = 3
"""In one session: the first is cold, the last is warm."""

ROUNDS_IN_USE = {"A": 24, "B": 8}
"""Rounds of about a minute of work in all: until then a JVM's compiler takes much of one of two cores from the work."""

LAST = 5
"""The median of so many rounds at the end counts: single ones differ by a third on a shared machine."""

AGAIN_TIME, AGAIN_OPENED = 0.15, 0.05
MEMORY = "4g"


Work = Callable[[], tuple[list[Line], dict[str, Any]]]


def made(warehouse: Path, name: str, shape: LargeShape, *, data: bool = False) -> LargeTable:
    """The table, written unless an earlier call left it there."""
    written = LargeTable(warehouse / "db" / name, shape)
    if not (written.folder / "metadata" / "version-hint.text").exists():
        written.write(data=data)
    return written


def half(shape: LargeShape) -> int:
    return shape.snapshots // 2


def plans(warehouse: Path, name: str) -> tuple[list[Line], dict[str, Any]]:
    """All plan the older half away: Iceberg by the part of its action that finds files, without deleting them."""
    shape = SHAPES[name]
    made(warehouse, name, shape)
    ways = {**dict.fromkeys(("own-plan", "plain-plan", "firnline-plan"), ROUNDS_IN_USE[name]), "iceberg-plan": ROUNDS}
    told = {way: measured(way, warehouse, name, half(shape), rounds, MEMORY) for way, rounds in ways.items()}
    agree([each["rounds"] for each in told.values()], sum(shape.victims(half(shape)).values()))
    own, plain, on_spark, theirs = (told[way] for way in ways)
    spark_s, threads_s = (median(each["seconds"] for each in one["rounds"][-LAST:]) for one in (plain, own))
    work = f"shape {name}, plan on Spark against threads, plain session in use"
    beside = Line(work, spark_s, threads_s, THREADS_CEILING, at_most=True)
    for each in (own, on_spark):
        each["warm_s"] = each["rounds"][ROUNDS - 1]["seconds"]
    alone = f"shape {name}, plan{{}} against finding the files alone"
    lines = versus(alone.format(" on Spark"), on_spark, theirs, SPARK_FLOORS[name])
    first, told["started-plan"] = first_on_spark(warehouse, name, plain, own)
    return [beside, first, *lines, *versus(alone.format(""), own, theirs, ALONE_FLOORS[name])], told


def first_on_spark(
    warehouse: Path, name: str, plain: dict[str, Any], own: dict[str, Any]
) -> tuple[Line, dict[str, Any]]:
    """The second process of a user: the first one left an archive of the classes that Spark loads."""
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(2):
            told = measured(
                "started-plan", warehouse, name, half(SHAPES[name]), 1, MEMORY, environment={"XDG_CACHE_HOME": cache}
            )
    first_of = [each["rounds"][0] for each in (plain, own, told)]
    agree([[each] for each in first_of], first_of[0]["victims"])
    allowed = plain["cold_s"] - first_of[0]["seconds"] + 1.5 * first_of[1]["seconds"]
    work = f"shape {name}, first plan on a session of firnline's, against a session's start and 1.5 on threads"
    return Line(work, told["cold_s"], allowed, FIRST_CEILING, at_most=True), told


def versus(work: str, ours: dict[str, Any], theirs: dict[str, Any], floors: tuple[float, float]) -> list[Line]:
    return [
        Line(f"{work}, {how}", ours[f"{how}_s"], theirs[f"{how}_s"], floor)
        for how, floor in zip(("warm", "cold"), floors, strict=True)
    ]


def against_the_action(warehouse: Path, name: str, plan: dict[str, Any]) -> tuple[list[Line], dict[str, Any]]:
    """Iceberg has no dry run: who wants to know what would go has to run the action, with its deletes."""
    ways = ("own-expire", "iceberg-expire") if name in WHOLE_FLOORS else ("iceberg-expire",)
    told = {way: expiries(warehouse, way, name) for way in ways}
    left = {each["left"] for one in told.values() for each in one["rounds"]}
    if len(left) != 1:
        raise AssertionError(f"not the same files are left: {left}")
    lines = versus(f"shape {name}, plan against the action", plan, told["iceberg-expire"], OWN_FLOORS[name])
    if name in WHOLE_FLOORS:
        whole = f"shape {name}, whole expire with deletes"
        lines += versus(whole, told["own-expire"], told["iceberg-expire"], WHOLE_FLOORS[name])
    return lines, told


def expiries(warehouse: Path, way: str, shape: str) -> dict[str, Any]:
    """What one tool told of expiring a shape, each time on a table of its own with all its data files."""
    name = f"{shape}_{way}".replace("-", "_")
    tables = [made(warehouse, f"{name}_{turn}", SHAPES[shape], data=True) for turn in range(ROUNDS)]
    told = measured(way, warehouse, name + "_{}", half(SHAPES[shape]), ROUNDS, MEMORY)
    for each in tables:
        shutil.rmtree(each.folder)
    return told


def agree(rounds: list[list[dict[str, Any]]], victims: int) -> None:
    """Raises where two rounds found other files, or another number than the shape has."""
    digests = {each["digest"] for one in rounds for each in one}
    counts = {each["victims"] for one in rounds for each in one}
    if len(digests) != 1 or counts != {victims}:
        raise AssertionError(f"victims differ: {counts}, expected {victims}")


def again(warehouse: Path, name: str) -> tuple[list[Line], dict[str, Any]]:
    """The second plan after 1 % of the table changed, with what the first one remembers."""
    shape = SHAPES[name]
    grown = replace(shape, snapshots=shape.snapshots + max(1, shape.snapshots // 100))
    table_of = made(warehouse, name, shape)
    with tempfile.TemporaryDirectory() as folder:
        remembering = {"FIRNLINE_CACHE": f"{folder}/units", "XDG_CONFIG_HOME": folder}
        first = measured("own-plan", warehouse, name, half(shape), 1, MEMORY, environment=remembering)
        before = _entries(folder)
        LargeTable(table_of.folder, grown).write(shape.snapshots + 1, version=2)
        second = measured("own-plan", warehouse, name, half(shape), 1, MEMORY, environment=remembering)
        newly = _entries(folder) - before
    shutil.rmtree(table_of.folder)
    times = [each["rounds"][0]["seconds"] for each in (first, second)]
    lines = [
        Line(f"shape {name}, second plan after 1 %, time", times[1], times[0], AGAIN_TIME, at_most=True),
        Line(f"shape {name}, second plan after 1 %, objects opened", newly, before, AGAIN_OPENED, at_most=True),
    ]
    return lines, {"first": first, "second": second}


def _entries(folder: str) -> int:
    """What is remembered: one entry for each object that was ever opened, many of them in one file."""
    names: set[tuple[str, int]] = set()
    for path in (each for each in Path(folder, "units").rglob("*") if each.is_file()):
        with opened(str(path)) as (handle, found):
            rows = rows_in(handle, found.st_size)
        names |= set() if rows is None else {(str(path.parent), name) for name in rows.names.tolist()}
    return len(names)


@contextmanager
def warehouse_at(keep: str | None) -> Iterator[Path]:
    if keep:
        yield Path(keep).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", metavar="FOLDER", help="write the tables there and leave them")
    arguments = parser.parse_args()
    large = os.environ.get("FIRNLINE_BENCH") == "large"
    lines: list[Line] = []
    details: dict[str, Any] = {"machine": machine()}
    with warehouse_at(arguments.keep) as warehouse:
        works: list[tuple[str, Work]] = [
            ("plan A", lambda: plans(warehouse, "A")),
            ("action A", lambda: against_the_action(warehouse, "A", details["plan A"]["own-plan"])),
        ]
        if large:
            works += [
                ("plan B", lambda: plans(warehouse, "B")),
                ("action B", lambda: against_the_action(warehouse, "B", details["plan B"]["own-plan"])),
                ("again B", lambda: again(warehouse, "B")),
            ]
        for name, work in works:
            found, details[name] = work()
            lines += found
            print(f"{table(found)}\n\n{rounds_table(details[name])}\n", flush=True)
            save("expire-large" if large else "expire", lines, details)
    return 0 if all(line.holds for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
