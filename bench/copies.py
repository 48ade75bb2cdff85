"""How fast files go from one bucket to another: versitygw, on this machine, in two sizes.

firnline streams them (both buckets are reached by different settings, as two accounts are), sees that each copy is
whole and says its checksum, next to obstore that reads and writes the same bytes and looks at nothing. Then the server
copies by itself: for firnline, for boto3 as `aws s3 cp` asks it (a look at the source, then the copy), and for obstore,
which asks for the copy alone. As many are under way at once.
Each copies to new names, in turns; the middle turn counts. Exits 1 below 0.8 of obstore where it is streamed, of boto3
where the server copies.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import boto3
import obstore
from boto3.s3.transfer import TransferConfig
from botocore.config import Config

from firnline.local.copying import LocalCopyMany
from firnline.ports.copying import CopyFate, CopyJob
from firnline.stores.copies.copying import ObjectCopy
from firnline.stores.s3.places import open_s3
from firnline.stores.throttle import Lanes, Throttle
from harness.servers.process import Server
from harness.servers.s3 import make_bucket
from harness.servers.versitygw import versitygw

FLOOR = 0.8
TURNS = 5
AT_ONCE = 16
SIZES = {"2 MiB": (2 << 20, 200), "32 MiB": (32 << 20, 16)}
LIVE, COLD = "live", "cold"
FIRNLINE = "firnline"
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


def by_firnline(source: Mapping[str, str], target: Mapping[str, str], size: int) -> Act:
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


def as_aws_does(buckets: Buckets) -> Act:
    """boto3's own copy, which the tools of AWS are made of: it asks for the source's size first."""
    said = buckets.server.settings
    client = boto3.client(
        "s3",
        endpoint_url=said["s3.endpoint"],
        aws_access_key_id=said["s3.access-key-id"],
        aws_secret_access_key=said["s3.secret-access-key"],
        region_name=said["s3.region"],
        config=Config(max_pool_connections=AT_ONCE, s3={"addressing_style": "path"}),
    )
    alone = TransferConfig(use_threads=False)
    return _each(lambda name, to: client.copy({"Bucket": LIVE, "Key": name}, COLD, to, Config=alone))


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
            for way, target, others in (
                ("streamed", buckets.elsewhere, {"obstore": streamed(buckets)}),
                ("by the server", server.settings, {"boto3": as_aws_does(buckets), "obstore": by_server(buckets)}),
            ):
                ours = {FIRNLINE: by_firnline(server.settings, target, size)}
                folders = {f"{way} {who}": act for who, act in (ours | others).items()}
                spent = dict(zip(ours | others, in_turns(folders, names).values(), strict=True))
                answer[f"{name}, {way}"] = {"seconds": spent, "ratios": _ratios(spent)}
    return answer


def _ratios(spent: Mapping[str, float]) -> dict[str, float]:
    """Returns what firnline reaches of each of the others; the first is the one that counts."""
    return {who: round(theirs / spent[FIRNLINE], 2) for who, theirs in spent.items() if who != FIRNLINE}


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
            spent = ", ".join(f"{who} {seconds:.2f} s" for who, seconds in each["seconds"].items())
            reached = ", ".join(f"{ratio:.2f} of {who}" for who, ratio in each["ratios"].items())
            print(f"{name:24} {spent}: {reached}")
        print(f"at least {FLOOR:g} of the first that is named")
    return 0 if min(next(iter(each["ratios"].values())) for each in answer.values()) >= FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
