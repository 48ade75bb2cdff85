"""Many victims: a purge holds one batch at a time, and tells a person how far it has come."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from firnline.model.locations import join
from firnline.testing.manifests import Item
from firnline.testing.tables import QuickFiles, SmallTable

VICTIMS = 60_000
PER_SNAPSHOT = 10_000
ALLOWED = 200 << 20

DRIVER = """
import resource, sys
from firnline.cli.main import run
code = run(sys.argv[1:])
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
sys.exit(code)
"""


@dataclass(frozen=True)
class Purged:
    """What one purge of its own process took at its peak, and what a person saw of it."""

    peak: int
    shown: str


def make(folder: Path, victims: int) -> tuple[str, list[str]]:
    """Returns a table's location and the empty files that only staged snapshots need: these expire."""
    table = SmallTable(QuickFiles(), str(folder))
    table.append(2)
    paths = [join(table.location, "data", f"{place // 1000:03d}", f"{place:06d}.parquet") for place in range(victims)]
    write_empty(paths)
    for start in range(0, victims, PER_SNAPSHOT):
        table.commit("append", [Item(path, 0) for path in paths[start : start + PER_SNAPSHOT]], on=None)
    table.publish()
    return table.location, paths


def write_empty(paths: Iterable[str]) -> None:
    for path in paths:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path))
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))


def firnline(*arguments: str) -> Purged:
    """Runs a command with a terminal to tell its progress to."""
    mine, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, *arguments], stdout=subprocess.PIPE, stderr=theirs, text=True,
        env={**os.environ, "FIRNLINE_ENGINE": "local"},
    )  # fmt: skip
    os.close(theirs)
    shown: list[str] = []
    reader = threading.Thread(target=lambda: shown.extend(iter(lambda: read(mine), "")))
    reader.start()
    said, _ = process.communicate(timeout=300)
    reader.join()
    os.close(mine)
    assert process.returncode == 0, said + "".join(shown)
    return Purged(int(re.findall(r"peak (\d+)", said)[0]), "".join(shown))


def read(terminal: int) -> str:
    try:
        return os.read(terminal, 65536).decode(errors="replace")
    except OSError:  # the other side is closed
        return ""


def purge(location: str) -> Purged:
    """Commits in one process and purges in another, which is the one that is measured."""
    firnline("expire", location, "--grace", "1s", "--yes", "--blast-radius", "100%")
    time.sleep(1)
    return firnline("purge", location)


@pytest.mark.full
def test_memory_does_not_grow_with_the_victims(
    quick_folder: Path, record_property: Callable[[str, object], None]
) -> None:
    one, _ = make(quick_folder / "one", 1)
    location, victims = make(quick_folder / "many", VICTIMS)
    few, many = purge(one), purge(location)
    assert not any(os.path.exists(path) for path in victims)
    record_property(
        "count: memory of a purge",
        {f"MiB at the peak of {VICTIMS:,} victims": many.peak >> 20, "MiB at the peak of one": few.peak >> 20},
    )
    assert many.peak - few.peak < ALLOWED
    told = re.findall(r"purging files: +\d+% \S+ ([\d,]+) of ([\d,]+), ([\d,]+)/s", many.shown)
    done = [int(each[0].replace(",", "")) for each in told]
    assert len(done) > 1
    assert done == sorted(done)
    assert {int(each[1].replace(",", "")) for each in told} == {VICTIMS + 2 * VICTIMS // PER_SNAPSHOT}
    assert all(int(each[2].replace(",", "")) for each in told)
