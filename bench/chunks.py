"""A search for garbage among 5 million chunk references of Icechunk, next to the library's own collection.

.venv/bin/python bench/chunks.py [--short] [--keep FOLDER]

One repository, written by the library: 50 snapshots whose manifests name 100,000 chunks each. Its garbage is looked
for, without deleting any, by the library (`garbage_collect`, a dry run), by firnline on threads, and by firnline on
Spark (`local[2]`): each in a process of its own, one after the other, three rounds, of which the best counts. All must
find as many objects of each kind as were left there. The same is done with a tenth of the chunks.

Exits 1 where they find different numbers, where the driver's memory on Spark grows by more than FLAT_MIB from a tenth
to all, or where firnline takes more times as long as the library than FLOORS say. `--short` has 500,000 references, of
which Spark's fixed cost is most of the time: its times are shown and not judged.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from parts.chunk_repository import ChunkShape
from parts.measuring import machine, measured
from parts.reporting import Line, save, table

FULL = ChunkShape(100_000, 50, dropped=5, abandoned=1_000)
SHORT = ChunkShape(20_000, 25, dropped=5, abandoned=200)
FLOORS = {"threads": 20.0, "spark": 60.0}
FLAT_MIB = 64
WAYS = ("library", "threads", "spark")
ROUNDS = 3
MEMORY = "2g"


def written(folder: Path, shape: ChunkShape) -> Path:
    """Returns the repository, written unless an earlier run left it there."""
    place = folder / f"{shape.chunks}-chunks-{shape.commits}-commits"
    if not place.exists():
        begun = time.perf_counter()
        shape.write(place)
        print(f"{shape.references:,} references written in {time.perf_counter() - begun:.0f} s", flush=True)
    return place


def looked(way: str, place: Path, shape: ChunkShape) -> dict[str, Any]:
    """What a process told. Raises where a round found other numbers than were left there."""
    told = measured(way, place, ROUNDS, MEMORY, program="chunks_child.py")
    for each in told["rounds"]:
        if each["found"] != shape.garbage:
            raise AssertionError(f"{way}: {each['found']}, expected {shape.garbage}")
    best = {what: min(each[what] for each in told["rounds"]) for what in ("seconds", "cpu_s")}
    return {**told, **best, "peak_mib": told["rounds"][-1]["peak_mib"]}


def memory_of(way: str, told: dict[str, Any]) -> str:
    """The driver's peak; on Spark also that of the JVM and all Python workers, which nobody asks to be flat here."""
    others = [f"{told['rss_mib'][role]:,} {role}" for role in ("jvm", "workers") if way == "spark"]
    return ", ".join([f"{told['peak_mib']:,}", *others])


def shown(all_of: dict[str, Any], tenth: dict[str, Any], shape: ChunkShape) -> str:
    head = "| way | s, first / best | CPU s | references/s | for each CPU second | MiB, a tenth | MiB, all |"
    rows = [head, "|---" * (head.count("|") - 1) + "|"]
    for way, told in all_of.items():
        rates = [f"{shape.references / told[what]:,.0f}" for what in ("seconds", "cpu_s")]
        times = f"{told['rounds'][0]['seconds']:.1f} / {told['seconds']:.1f} | {told['cpu_s']:.1f}"
        rows.append(
            f"| {way} | {times} | {' | '.join(rates)} | {memory_of(way, tenth[way])} | {memory_of(way, told)} |"
        )
    return "\n".join(rows)


@contextmanager
def folder_at(keep: str | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="firnline-chunks-") as folder:
        yield Path(keep).resolve() if keep else Path(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="a tenth of the references; saves nothing")
    parser.add_argument("--keep", metavar="FOLDER", help="write the repositories there and leave them")
    arguments = parser.parse_args()
    shape, before = SHORT if arguments.short else FULL, machine()
    with folder_at(arguments.keep) as folder:
        places = {each: written(folder, each) for each in (shape.tenth(), shape)}
        tenth, whole = ({way: looked(way, place, each) for way in WAYS} for each, place in places.items())
    print(shown(whole, tenth, shape))
    lines = [
        Line(f"{shape.references:,} references, {way}", whole[way]["seconds"], whole["library"]["seconds"], floor, True)
        for way, floor in FLOORS.items()
    ]
    grown = whole["spark"]["peak_mib"] - tenth["spark"]["peak_mib"]
    print(
        f"driver on Spark grew by {grown} MiB of {FLAT_MIB} allowed; all found {sum(shape.garbage.values()):,} objects"
    )
    print(table(lines))
    if not arguments.short:
        save("chunks", lines, {"machine": before, "references": shape.references, "tenth": tenth, "whole": whole})
    return 0 if grown <= FLAT_MIB and (arguments.short or all(line.holds for line in lines)) else 1


if __name__ == "__main__":
    sys.exit(main())
