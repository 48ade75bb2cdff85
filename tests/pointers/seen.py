"""What the tests of pointers look at: files in a table's folder, and what readers without a catalog find."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pyiceberg.table import StaticTable

from tests.neighbours.lakes import COLUMN, RealLake


def folder(lake: RealLake, name: str) -> Path:
    return Path(lake.table(name).location().removeprefix("file://"))


def files(place: Path) -> list[str]:
    """Returns the pointers in a table's folder; times are left out."""
    found = sorted(each.relative_to(place).as_posix() for each in place.rglob("*.ver"))
    return [re.sub(r"[0-9]{8}T[0-9.]+[0-9]", "TIME", each) for each in found]


def sync(lake: RealLake, **options: Any) -> list[tuple[str, str]]:
    """Returns what became of which pointer."""
    done = lake.firnline().pointers.sync(**options)
    for each in done:
        for problem in each.problems:
            raise problem
    return [(each.key.rpartition("/")[2], each.outcome) for table in done for each in table.pointers]


def read(lake: RealLake, place: Path, **asked: Any) -> list[int]:
    """Returns the rows that a reader without a catalog finds."""
    found = lake.firnline().pointers.open_path(str(place), **asked)
    return sorted(StaticTable.from_metadata(found.metadata).scan().to_arrow().column(COLUMN).to_pylist())
