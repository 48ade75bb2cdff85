"""How fast files go from one bucket to another: versitygw, on this machine, in two sizes.

firnline streams them (both buckets are reached by different settings, as two accounts are), sees that each copy is
whole and says its checksum, next to obstore that reads and writes the same bytes and looks at nothing; then the server
copies by itself for both. As many are under way at once. Each copies to new names, in turns; the middle turn counts.
Exits 1 below 0.8 of obstore.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import obstore

from firnline.local.copying import LocalCopyMany
from firnline.ports.copying import CopyFate, CopyJob
from firnline.stores.copies.copying import ObjectCopy
from firnline.stores.s3 import open_s3
from firnline.stores.throttle import Lanes, Throttle
from harness.servers.process import Server
from harness.servers.s3 import make_bucket
from harness.servers.versitygw import versitygw

FLOOR = 0.8
TURNS = 5
AT_ONCE = 16
SIZES = {"2 MiB": (2 << 20, 200), "32 MiB": (32 << 20, 16)}
LIVE, COLD = "live", "cold"
UNLIMITED = Lanes(defaults={})

Act = Callable[[str, Sequence[str]], None]
"""Copies objects of these names to a folder."""


@dataclass(frozen=True)
class Buckets:
    """Two buckets of one server. `elsewhere` are settings that reach it by another name, as another account would."""

    server: Server

    @property
    def elsewhere(self) -> dict[str, str]:
        here = self.server.settings
        return {**here, "s3.endpoint": here["s3.endpoint"].replace("127.0.0.1", "localhost")}

    def opened(self, bucket: str) -> Any:
        return open_s3(self.server.settings).bucket(bucket, 0)

    def fill(self, size: int, count: int) -> list[str]:
        names = [f"{size}/{number:05d}.parquet" for number in range(count)]
        for name in names:
            obstore.put(self.opened(LIVE), name, os.urandom(size))
        return names


def by_firnline(source: dict[str, str], target: dict[str, str], size: int) -> Act:
    """Returns who copies as a hand-over does: each copy is compared, and its checksum told."""
    copier = ObjectCopy(source, target, source_throttle=Throttle(UNLIMITED), target_throttle=Throttle(UNLIMITED))
    many = LocalCopyMany(AT_ONCE)

    def act(folder: str, names: Sequence[str]) -> None:
        jobs = [CopyJob(f"s3://{LIVE}/{name}", f"s3://{COLD}/{folder}/{name}", size, "data") for name in names]
        outcomes = many.copy_many(jobs, copier)
        assert {each.fate for each in outcomes} == {CopyFate.COPIED}, outcomes[0]

    return act


def streamed(buckets: Buckets) -> Act:
    """obstore holds each file whole: what it streams it cannot write without a loop of its own."""
    live, cold = buckets.opened(LIVE), buckets.opened(COLD)
    return _each(lambda name, to: obstore.put(cold, to, obstore.get(live, name).bytes()))


def by_server(buckets: Buckets) -> Act:
    """obstore copies within a bucket alone: the live one takes its copies."""
    live = buckets.opened(LIVE)
    return _each(lambda name, to: obstore.copy(live, name, to))


def _each(one: Callable[[str, str], Any]) -> Act:
    def act(folder: str, names: Sequence[str]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda name: one(name, f"{folder}/{name}"), names))

    return act


def in_turns(contestants: dict[str, Act], names: Sequence[str]) -> dict[str, float]:
    """Returns the seconds of each, the middle of its turns."""
    spent: dict[str, list[float]] = {who: [] for who in contestants}
    for turn in range(TURNS):
        for who, act in contestants.items():
            start = time.perf_counter()
            act(f"{who}-{turn}", names)
            spent[who].append(time.perf_counter() - start)
    return {who: round(median(each), 3) for who, each in spent.items()}


def measure(folder: Path) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    with versitygw(folder) as server:
        for bucket in (LIVE, COLD):
            make_bucket(server, bucket)
        buckets = Buckets(server)
        for name, (size, count) in SIZES.items():
            names = buckets.fill(size, count)
            for way, target, other in (
                ("streamed", buckets.elsewhere, streamed(buckets)),
                ("by the server", server.settings, by_server(buckets)),
            ):
                ours = by_firnline(server.settings, target, size)
                spent = in_turns({f"{way} firnline": ours, f"{way} obstore": other}, names)
                mine, theirs = spent.values()
                answer[f"{name}, {way}"] = {"firnline": mine, "obstore": theirs, "ratio": round(theirs / mine, 2)}
    return answer


def main() -> int:
    """0 if every ratio reaches the floor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        answer = measure(Path(folder))
    if arguments.json:
        print(json.dumps({"floor": FLOOR, "copies": answer}))
    else:
        for name, each in answer.items():
            spent = f"firnline {each['firnline']:7.2f} s, obstore {each['obstore']:7.2f} s"
            print(f"{name:24} {spent}: {each['ratio']:.2f}")
        print(f"at least {FLOOR:g} of obstore")
    return 0 if min(each["ratio"] for each in answer.values()) >= FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
