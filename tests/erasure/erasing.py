"""What tests of erasures ask a lake for."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pyarrow.parquet as pq

from firnline.ops.erasure.report import ErasurePlan, ErasureReport
from firnline.ops.tiers.waking import Inquiry
from tests.neighbours.lakes import COLUMN, RealLake

ASKED = Inquiry("RIGHT-17", "A. Person")


def file_of(lake: RealLake, name: str, value: int) -> str:
    """Returns the data file of a table, of any snapshot, that holds a row."""
    table = lake.table(name)
    for path in sorted(set(table.inspect.all_files().column("file_path").to_pylist())):
        if value in pq.read_table(path.removeprefix("file://")).column(COLUMN).to_pylist():
            return str(path)
    raise AssertionError(f"no file of {name} has {value}")


def erase(lake: RealLake, name: str, *files: str, grace: str = "0s", asked: Inquiry = ASKED) -> ErasureReport:
    from firnline.app.requests import age_ms

    return lake.firnline().erasures.carry_out(f"lake.db.{name}", files, asked, age_ms(grace), lambda plan: None)


def planned(lake: RealLake, name: str, *files: str) -> ErasurePlan:
    return lake.firnline().erasures.plan(f"lake.db.{name}", files)


def without(rows: dict[int, list[int]], *values: int) -> dict[int, list[int]]:
    return {snapshot: [each for each in told if each not in values] for snapshot, told in rows.items()}


def mentions(folder: Path, text: str) -> list[Path]:
    """Returns the objects below a folder that name a text, as it is or in the blocks of an Avro file. Records of runs
    are left out: they say what was erased.
    """
    found: list[Path] = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        data = path.read_bytes()
        if path.suffix == ".avro":
            with path.open("rb") as opened:
                data = repr(list(fastavro.reader(opened))).encode()
        if "_firnline" not in path.parts and (text.encode() in data or text in path.name):
            found.append(path)
    return found


def is_lying(path: str) -> bool:
    """Tells whether a file is still on disk."""
    return Path(path.removeprefix("file://")).exists()
