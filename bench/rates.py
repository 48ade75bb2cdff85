"""CPU time that one core needs to open units: what larger sizes are reckoned with. A busy machine changes it little.

Also how much of it the inflater takes alone, on the same bytes. Writes docs/benchmarks/rates.json. Exits 1 where
decoding is slower than it may be beside the inflater.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

from parts.measuring import machine
from parts.reporting import FOLDER

from firnline.formats.avro import decode_many
from firnline.formats.avro.codecs import codecs_for
from firnline.formats.avro.engine import engine_for
from firnline.formats.avro.framing import find_blocks
from firnline.formats.iceberg.expand import _ENTRY_COLUMNS, IcebergExpand
from firnline.model.files import File, FileKind
from firnline.model.portions import portions
from firnline.stores.objects import ObjectStores
from harness.large.tables import LargeShape, LargeTable

TURNS = 7
INFLATER_FLOOR = 0.6


def cpu_ms(work: Callable[[], object], units: int) -> float:
    """The least of some turns, for one unit."""
    spent: list[float] = []
    for _ in range(TURNS):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return round(min(spent) / units * 1000, 3)


def units(table: LargeTable, pattern: str, kind: FileKind) -> Sequence[File]:
    found = sorted((table.folder / "metadata").glob(pattern))
    return [File(kind, f"file://{path}", path.stat().st_size, opens=True) for path in found]


def inflater_share(manifests: Sequence[File]) -> float:
    """What part of the CPU time of decoding is inflating, both in portions as a run opens them: 1 where decoding costs
    nothing beside it.
    """
    contents = [[Path(each.key.removeprefix("file://")).read_bytes() for each in some] for some in portions(manifests)]
    engine = engine_for(sum(map(len, chain.from_iterable(contents))), "auto")
    pieces = [packed.pieces for some in contents for _, packed in find_blocks(some, engine)]
    inflate = codecs_for("auto").by_name["deflate"]
    works: tuple[Callable[[], object], ...] = (
        (lambda: [inflate(some, 1 << 30) for some in pieces]),
        (lambda: [decode_many(some, _ENTRY_COLUMNS) for some in contents]),
    )
    turns = [[cpu_ms(work, 1) for work in works] for _ in range(TURNS)]  # in turns: the clock of a core changes
    alone, all_of_it = min(each[0] for each in turns), min(each[1] for each in turns)
    return round(alone / all_of_it, 2)


def main() -> int:
    engine_for(0, "compiled")  # as after the first few megabytes of a long run
    expand = IcebergExpand(ObjectStores())
    rates, shares = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in (("small", LargeShape(400, 54, refs=1)), ("long", LargeShape(60, 1_075, live=30, refs=1))):
            table = LargeTable(Path(folder, name), shape)
            table.write()
            lists = units(table, "snap-*.avro", FileKind.MANIFEST_LIST)[-200:]
            manifests = units(table, "*-m0.avro", FileKind.MANIFEST)[-300:]
            for what, every in ((f"list of {shape.live}", lists), (f"manifest of {shape.files:,}", manifests)):
                rates[what] = cpu_ms(lambda every=every: list(map(expand, portions(every))), len(every))  # type: ignore[misc]
            shares[f"manifest of {shape.files:,}"] = inflater_share(manifests)
    for what, each in rates.items():
        print(f"{what:20} {each:8.3f} ms of CPU")
    for what, each in shares.items():
        print(f"{what:20} decoded at {each:.2f} of the inflater alone, at least {INFLATER_FLOOR}")
    answer = {"cpu_ms": rates, "of_the_inflater": shares, "machine": machine()}
    (FOLDER / "rates.json").write_text(json.dumps(answer, indent=1) + "\n")
    return 0 if min(shares.values()) >= INFLATER_FLOOR else 1


if __name__ == "__main__":
    sys.exit(main())
