"""CPU time that one core needs to open units: what larger sizes are reckoned with. A busy machine changes it little.

Writes docs/benchmarks/rates.json.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from parts.measuring import machine
from parts.reporting import FOLDER

from firnline.formats.iceberg.expand import IcebergExpand
from firnline.model.files import File, FileKind
from firnline.model.portions import portions
from firnline.stores.objects import ObjectStores
from firnline.testing.large import LargeTable, Shape

TURNS = 5


def cpu_ms(work: Callable[[], object], units: int) -> float:
    """The least of some turns, for one unit."""
    spent = []
    for _ in range(TURNS):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return round(min(spent) / units * 1000, 3)


def units(table: LargeTable, pattern: str, kind: FileKind) -> Sequence[File]:
    found = sorted((table.folder / "metadata").glob(pattern))
    return [File(kind, f"file://{path}", path.stat().st_size, opens=True) for path in found]


def main() -> None:
    expand = IcebergExpand(ObjectStores())
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in (("small", Shape(400, 54, refs=1)), ("long", Shape(60, 1_075, live=30, refs=1))):
            table = LargeTable(Path(folder, name), shape)
            table.write()
            lists = units(table, "snap-*.avro", FileKind.MANIFEST_LIST)[-200:]
            manifests = units(table, "*-m0.avro", FileKind.MANIFEST)[-300:]
            for what, every in ((f"list of {shape.live}", lists), (f"manifest of {shape.files:,}", manifests)):
                rates[what] = cpu_ms(lambda every=every: list(map(expand, portions(every))), len(every))  # type: ignore[misc]
    for what, each in rates.items():
        print(f"{what:20} {each:8.3f} ms of CPU")
    (FOLDER / "rates.json").write_text(json.dumps({"cpu_ms": rates, "machine": machine()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
