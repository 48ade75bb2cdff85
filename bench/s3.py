"""How fast an S3 server is listed and emptied: 100,000 small objects on versitygw, on this machine.

List: firnline on threads, a piece for each, next to obstore alone. Delete: firnline with an answer for each key, next
to obstore alone and to the bulk delete of Iceberg's S3FileIO with its defaults. Each empties sets of its own, all
alike, in turns; the middle turn counts. firnline's own limit of keys per second is lifted here. Exits 1 below 0.8 of
obstore, or behind S3FileIO.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import obstore

from firnline.local.delete import LocalDeleteMany
from firnline.local.engine import LocalEngine
from firnline.ports.delete import Doomed, always
from firnline.stores.delete import ObjectDelete
from firnline.stores.ranges import ObjectRanges
from firnline.stores.s3.places import open_s3
from firnline.stores.throttle import Lanes, Throttle
from harness.servers.process import Server
from harness.servers.rest import iceberg_jvm
from harness.servers.s3 import ACCESS, REGION, SECRET, make_bucket
from harness.servers.versitygw import versitygw

FLOOR = 0.8
OBJECTS, FOLDERS = 100_000, 100
TURNS = 5
PIECES = 8
BUCKET = "bench"
UNLIMITED = Lanes(defaults={})

Empty = Callable[[], Any]
"""Deletes what it was made for; how names are handed over is not measured, of anybody."""

Delete = Callable[[list[str]], Empty]


@dataclass(frozen=True)
class Ground:
    """A server over a folder, in which sets of objects are made as plain files."""

    server: Server
    folder: Path

    def fill(self, name: str, objects: int) -> list[str]:
        """Returns the names of as many new objects, without their bucket."""
        names = [f"{name}/data/day={number % FOLDERS:03d}/{number:06d}.parquet" for number in range(objects)]
        for number, each in enumerate(names):
            path = self.folder / BUCKET / each
            if number < FOLDERS:
                path.parent.mkdir(parents=True)
            path.touch()
        return names

    def is_empty(self, name: str) -> bool:
        return not any((self.folder / BUCKET / name).rglob("*.parquet"))


def by_firnline(server: Server) -> Delete:
    delete, many = ObjectDelete(server.settings, throttle=Throttle(UNLIMITED)), LocalDeleteMany()

    def ready(names: list[str]) -> Empty:
        doomed = [Doomed(f"s3://{BUCKET}/{name}") for name in names]
        return lambda: [
            outcome
            for start in range(0, len(doomed), many.rows)
            for outcome in many.delete_many(doomed[start : start + many.rows], delete, always)
        ]

    return ready


def by_obstore(server: Server) -> Delete:
    bucket = open_s3(server.settings).bucket(BUCKET, 0)
    return lambda names: lambda: obstore.delete(bucket, names)


def by_iceberg(server: Server, jvm: Any) -> Delete:
    """S3FileIO as it comes: 250 keys in a request, a thread for each core."""
    settings = jvm.java.util.HashMap()
    for key, value in {
        "s3.endpoint": server.url,
        "s3.access-key-id": ACCESS,
        "s3.secret-access-key": SECRET,
        "s3.path-style-access": "true",
        "client.region": REGION,
    }.items():
        settings.put(key, value)
    files = jvm.org.apache.iceberg.aws.s3.S3FileIO()
    files.initialize(settings)

    def ready(names: list[str]) -> Empty:
        listed = in_java(jvm, names)
        return lambda: files.deleteFiles(listed)

    return ready


def in_java(jvm: Any, names: Sequence[str]) -> Any:
    """Returns the locations as a list in the JVM: they cross in a file, not with a call for each name."""
    with tempfile.NamedTemporaryFile("w") as text:
        text.write("\n".join(f"s3://{BUCKET}/{name}" for name in names))
        text.flush()
        return jvm.java.nio.file.Files.readAllLines(jvm.java.io.File(text.name).toPath())


def list_firnline(server: Server, name: str) -> int:
    source = ObjectRanges(server.settings)
    listing = LocalEngine().list(source.split(f"s3://{BUCKET}/{name}", PIECES), source)
    return listing.all.files


def list_obstore(server: Server, name: str) -> int:
    bucket = open_s3(server.settings).bucket(BUCKET, 0)
    return sum(chunk.num_rows for chunk in obstore.list(bucket, name, chunk_size=10_000, return_arrow=True))


def rate(work: Callable[[], Any], objects: int = OBJECTS) -> float:
    start = time.perf_counter()
    work()
    return objects / (time.perf_counter() - start)


def lists(ground: Ground, names: str) -> dict[str, float]:
    """Objects per second of each; both must find all of them."""
    ways = {"firnline": list_firnline, "obstore": list_obstore}
    found: list[int] = []
    rates = {
        way: rate(lambda each=each: found.append(each(ground.server, names)))  # type: ignore[misc]
        for way, each in ways.items()
    }
    assert found == [OBJECTS, OBJECTS]
    return rates


def deletes(ground: Ground, ways: dict[str, Delete], turns: int, objects: int) -> dict[str, float]:
    """The middle rate of each, on sets of its own, which must be gone afterwards.

    All are made before the first is emptied: a file system may be slow to use again what was just freed.
    """
    sets = {(turn, way): f"{objects}-{turn}-{way}" for turn in range(turns) for way in ways}
    ready = {at: ways[at[1]](ground.fill(name, objects)) for at, name in sets.items()}
    rates: dict[str, list[float]] = {way: [] for way in ways}
    for (turn, way), name in sets.items():
        rates[way].append(rate(ready.pop((turn, way)), objects))
        assert ground.is_empty(name)
    return {way: middle(each) for way, each in rates.items()}


def middle(rates: Iterable[float]) -> float:
    """On a shared machine the best turn of anybody is luck."""
    return round(median(rates))


@contextmanager
def started(folder: Path) -> Iterator[tuple[Ground, dict[str, Delete]]]:
    with (
        versitygw(folder / "s3") as server,
        (folder / "java.log").open("a+b") as said,
        iceberg_jvm(folder, said, ("-Xmx1g", "-Dlog4j2.level=WARN")) as (jvm, _),
    ):
        make_bucket(server, BUCKET)
        ways = {"firnline": by_firnline(server), "obstore": by_obstore(server), "S3FileIO": by_iceberg(server, jvm)}
        yield Ground(server, folder / "s3" / "objects"), ways


def measure(folder: Path) -> dict[str, dict[str, float]]:
    """The middle rates of each, after all have emptied a small set: what is measured is not their start."""
    with started(folder) as (ground, ways):
        deletes(ground, ways, 1, 2_000)
        ground.fill("listed", OBJECTS)
        listed = [lists(ground, "listed") for _ in range(TURNS)]
        return {
            "list": {way: middle(turn[way] for turn in listed) for way in listed[0]},
            "delete": deletes(ground, ways, TURNS, OBJECTS),
        }


def main() -> int:
    """0 if both reach the floor, and deletes are ahead of Iceberg's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rates = measure(Path(folder))
    ratios = {verb: round(each["firnline"] / each["obstore"], 2) for verb, each in rates.items()}
    ahead = round(rates["delete"]["firnline"] / rates["delete"]["S3FileIO"], 2)
    if arguments.json:
        print(json.dumps({"floor": FLOOR, "objects": OBJECTS, "rates": rates, "ratios": ratios, "S3FileIO": ahead}))
    else:
        for verb, each in rates.items():
            figures = "  ".join(f"{way} {per_second:>8,.0f}/s" for way, per_second in each.items())
            print(f"{verb:8}{figures}  {ratios[verb]:.2f} of obstore")
        print(f"{ahead:.2f} of S3FileIO")
    return 0 if min(ratios.values()) >= FLOOR and ahead > 1 else 1


if __name__ == "__main__":
    sys.exit(main())
