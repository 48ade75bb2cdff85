"""A search on Spark of a million objects: what the driver holds does not grow with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from harness.crowds import Crowd

FEW = 10_000
MANY = 1_000_000
ALLOWED = 150 << 20

DRIVER = """
import resource, sys
import firnline
lake = firnline.open(engine="spark")
for inventory in sys.argv[2:]:
    plan, carried = lake.orphans(sys.argv[1], inventory=inventory, blast_radius=1.0)
    assert carried.state == "planned"
    print(plan.victims.all.files, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.spark
@pytest.mark.skipif(not os.environ.get("FIRNLINE_FULL"), reason="runs with FIRNLINE_FULL=1 (make test-full)")
def test_the_driver_does_not_grow_with_what_is_listed(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """An inventory names objects that were never there: it only proposes, and a saved plan deletes nothing."""
    crowd = Crowd.make(tmp_path)
    crowd.table("t")
    inventories = [inventory(crowd, tmp_path / f"{count}.parquet", count) for count in (FEW, MANY)]
    environment = {**os.environ, "PYICEBERG_HOME": str(tmp_path), "PYICEBERG_CATALOG__LAKE__TYPE": "sql",
                   "PYICEBERG_CATALOG__LAKE__URI": crowd.pointers.uri}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, crowd.name("t"), *inventories], env=environment, cwd=tmp_path, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (few, before), (many, after) = (map(int, line.split()) for line in done.stdout.splitlines())
    assert (few, many) == (FEW, MANY)
    assert after - before < ALLOWED, f"{before:,} bytes for {few:,} objects, {after:,} for {many:,}"
    record_property("count: memory of a search on Spark", json.loads(f'{{"MiB for {many:,} objects": {after >> 20}}}'))


def inventory(crowd: Crowd, file: Path, count: int) -> str:
    """Returns an inventory of everything that the table has, and of so many old files more."""
    there = [path for path in (crowd.folder / "lake/t").rglob("*") if path.is_file()]
    paths = [f"file://{path}" for path in there] + [
        f"{crowd.lake}/t/data/{n % 4096:03x}/{n:08d}.parquet" for n in range(count)
    ]
    sizes = [path.stat().st_size for path in there] + [1] * count
    rows = {"path": paths, "size": sizes, "modified": [1_577_836_800_000] * len(paths)}
    pyarrow.parquet.write_table(pa.table(rows), file, row_group_size=50_000)
    return str(file)
