"""What a reader feels of a worker: how long its reads take alone, beside a worker at 20 %, and beside one without pace.

A store that answers so many requests a second, one after the other: moto behind a queue. A few readers ask it for one
data file at a steady rate; a worker in a process of its own expires two lakes that are alike, the first within its
budget, the second as fast as it can. All in one run. Writes docs/benchmarks/worker.json. Exits 1 where the middle read
takes longer beside the budgeted worker than it may.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from threading import Event, Lock, Thread

import pyarrow as pa
import yaml
from parts.measuring import machine
from parts.reporting import FOLDER
from pyiceberg.catalog import load_catalog

from firnline.stores.objects import ObjectStores
from harness.servers.moto import moto
from harness.servers.process import Server
from harness.servers.s3 import make_bucket
from tests.stores.careless import careless

AT_MOST = 1.5
"""The middle read beside a worker at 20 %, against the middle read alone."""
TAKES = 60
"""Requests a second that the store answers."""
BUDGET = "20%"
READERS, EVERY_S = 3, 0.2
ALONE_S, TABLES, SNAPSHOTS = 20.0, 4, 6
SHORT_S, SHORT_TABLES, WARM_S = 5.0, 1, 2.0
POLICY = """keep: {{last: 1}}
grace: 0s
blast-radius: 100%
worker: {{every: 1h, orphans: off, at-once: 8, budget: {budget}}}
"""
FIRNLINE = str(Path(sys.executable).with_name("firnline"))


Reads = list[tuple[float, float]]
"""When each was due, and how long after that it had its answer."""


class SingleFile:
    """A queue before the store: a request leaves when those before it were answered, each in its time. `others` has
    when it was asked for anything but the readers' file.
    """

    def __init__(self, takes: int, file: str) -> None:
        self._each_s, self._free_s, self._lock, self._file = 1 / takes, 0.0, Lock(), file
        self.others: list[float] = []

    def wait(self, method: str, path: str) -> None:
        with self._lock:
            now = time.monotonic()
            if not path.endswith(self._file):
                self.others.append(now)
            self._free_s = leaves = max(self._free_s, now) + self._each_s
        time.sleep(max(0.0, leaves - time.monotonic()))


@dataclass
class SteadyReaders:
    """Ask for one object at a steady rate, whether or not the answer before came late."""

    read: Callable[[], object]

    @contextmanager
    def reading(self) -> Iterator[Reads]:
        """Yields the reads of this block, which are there when it is over."""
        stop, took = Event(), Reads()
        threads = [Thread(target=self._go, args=(stop, took, number / READERS)) for number in range(READERS)]
        for each in threads:
            each.start()
        yield took
        stop.set()
        for each in threads:
            each.join()

    def _go(self, stop: Event, took: Reads, part: float) -> None:
        due = time.monotonic() + part * EVERY_S
        while not stop.wait(max(0.0, due - time.monotonic())):
            self.read()
            took.append(
                (due, time.monotonic() - due)
            )  # from when it was due: a reader that waits is a read that is late
            due += EVERY_S


def lake(folder: Path, server: Server, through: str, tables: int) -> str:
    """Makes a lake in a folder, for firnline through the queue; returns a data file of it."""
    where = {"type": "sql", "uri": f"sqlite:///{folder}/lake.db", "warehouse": make_bucket(server, folder.name)}
    theirs = load_catalog(folder.name, **where, **server.settings)
    theirs.create_namespace("db")
    for number in range(tables):
        made = theirs.create_table(f"db.t{number}", schema=pa.schema([("x", pa.int64())]))
        for value in range(SNAPSHOTS):
            made.append(pa.table({"x": [value]}))
    settings = {**where, **server.settings, "s3.endpoint": through}
    (folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {folder.name: settings}}))
    return str(next(iter(made.scan().plan_files())).file.file_path)


def work(folder: Path, budget: str, takes: int) -> None:
    """Lets a worker go round once, with the budget and what is said of the store."""
    lanes = ", ".join(f"{each}-per-second: {takes}" for each in ("reads", "deletes", "writes"))
    stated = f"stores: {{s3://{folder.name}: {{{lanes}}}}}\n"
    (folder / "firnline.yaml").write_text(POLICY.format(budget=budget) + stated)
    own = {"PYICEBERG_HOME": str(folder), "HOME": str(folder), "FIRNLINE_CACHE": "off"}
    command = [FIRNLINE, "worker", "--once", "--engine", "local", "--memory", str(folder / "memory.json")]
    subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **own, "AWS_EC2_METADATA_DISABLED": "true"},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def figures(reads: Reads, asked: Sequence[float] = ()) -> dict[str, float]:
    """Of the reads that were due while the worker asked; of all where there was none."""
    since, until = (asked[0], asked[-1]) if asked else (0.0, float("inf"))
    cuts = quantiles([took for due, took in reads if since <= due <= until], n=100, method="inclusive")
    worker = {"worker_per_second": round(len(asked) / (until - since), 1)} if asked else {}
    return {
        **worker,
        **{f"p{each}_ms": round(cuts[each - 1] * 1000, 1) for each in (50, 95, 99)},
    }


def measure(folder: Path, alone_s: float, tables: int) -> dict[str, dict[str, float]]:
    """The times of reads: alone, beside a worker within its budget, and beside one that knows no bound."""
    with moto(folder / "s3") as server, careless(server.url) as store:
        for name in ("paced", "unpaced"):
            (folder / name).mkdir()
        file = lake(folder / "paced", server, store.url, tables)
        lake(folder / "unpaced", server, store.url, tables)
        queue = SingleFile(TAKES, file.rpartition("/")[2])
        store.before = queue.wait
        objects = ObjectStores({**server.settings, "s3.endpoint": store.url})
        readers = SteadyReaders(lambda: objects.get(file))
        for seconds in (WARM_S, alone_s):
            with readers.reading() as reads:
                time.sleep(seconds)
        found = {"alone": figures(reads)}
        for name, budget, takes in (("paced", BUDGET, TAKES), ("unpaced", "100%", 100_000)):
            queue.others.clear()
            with readers.reading() as reads:
                work(folder / name, budget, takes)
            found[name] = figures(reads, queue.others)
    return found


def ratios(found: dict[str, dict[str, float]], of: str) -> dict[str, float]:
    alone = found["alone"]
    return {each: round(found[of][each] / alone[each], 2) for each in alone if each.startswith("p")}


def main() -> int:
    """0 if the middle read beside the budgeted worker takes no longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few seconds, to see that it works; writes nothing")
    arguments = parser.parse_args()
    spans = (SHORT_S, SHORT_TABLES) if arguments.short else (ALONE_S, TABLES)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), *spans)
    times = {each: ratios(found, each) for each in ("paced", "unpaced")}
    for name, each in found.items():
        told = ", ".join(f"{what} {value:g}" for what, value in each.items())
        print(f"{name:8} {told}")
    for name, each in times.items():
        print(f"{name:8} " + ", ".join(f"{what.removesuffix('_ms')} {value:.2f} times" for what, value in each.items()))
    print(f"the middle read beside a worker at {BUDGET} may take {AT_MOST} times as long as alone")
    if not arguments.short:
        answer = {"store_takes": TAKES, "reads": found, "times": times, "machine": machine()}
        (FOLDER / "worker.json").write_text(json.dumps(answer, indent=1) + "\n")
    return 0 if times["paced"]["p50_ms"] <= AT_MOST else 1


if __name__ == "__main__":
    sys.exit(main())
