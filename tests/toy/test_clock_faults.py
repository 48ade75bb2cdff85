"""A format that can tell wrong times of snapshots: `check` names them. The toy, with this one ability more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from firnline.model.times import HOUR_MS

from .conftest import PACKAGE
from .tables import ToyTable

WITH_CLOCKS = """
from collections.abc import Iterator
from dataclasses import dataclass

from toy_lake import ToyFormat, ToyKit

from firnline.model.locations import join
from firnline.ports.abilities import ClockFault


@dataclass(frozen=True, slots=True)
class ClockedFormat(ToyFormat):
    name: str = "clocked-toy"

    def clock_faults(self, state) -> Iterator[ClockFault]:
        for each in state.graph:
            parent = state.graph[each.parent] if each.parent else None
            if parent and each.timestamp_ms <= parent.timestamp_ms:
                where = join(state.location, "lists", f"{each.id}.json")
                yield ClockFault(each.id, f"is no younger than {parent.id}", "set the clock", where)


class ClockedKit(ToyKit):
    name = "clocked-toy"

    def format(self, store, trusted=frozenset()):
        return ClockedFormat(store)


KIT = ClockedKit()
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package of that format, as if it were installed."""
    folder = tmp_path / "package"
    facts = folder / "clocked_toy-1.0.dist-info"
    facts.mkdir(parents=True)
    (folder / "clocked_toy.py").write_text(WITH_CLOCKS)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: clocked-toy\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[firnline.formats]\nclocked-toy = clocked_toy:KIT\n")
    return folder


def checked(table: ToyTable, package: Path, *words: str) -> tuple[int, str]:
    """Returns the exit code of `firnline check` and what it printed."""
    path = os.pathsep.join([str(package), str(PACKAGE)])
    around = {**os.environ, "PYTHONPATH": path, "HOME": str(package), "PYICEBERG_HOME": str(package)}
    command = [str(Path(sys.executable).with_name("firnline")), "check", table.location, "--engine", "local", *words]
    ended = subprocess.run(command, check=False, env=around, capture_output=True, text=True, timeout=120)
    assert not ended.stderr or ended.returncode == 1, ended.stderr
    return ended.returncode, ended.stdout


def test_check_names_snapshots_with_a_wrong_time(tmp_path: Path, package: Path) -> None:
    table = ToyTable.make(tmp_path / "t")
    assert checked(table, package)[0] == 0
    version = table.folder / "toy" / "000001.json"
    said = json.loads(version.read_bytes())
    said["snapshots"][2]["time"] = said["snapshots"][1]["time"]
    said["snapshots"][4]["time"] = said["snapshots"][3]["time"] - HOUR_MS
    version.write_text(json.dumps(said))

    code, printed = checked(table, package, "--json")
    found = json.loads(printed)
    assert (code, found["sound"], found["faults"]) == (1, False, 2)
    assert found["listed"] == [
        {
            "path": f"{table.location}/lists/{child}.json",
            "kind": "clock",
            "problem": f"is no younger than {child - 1}",
            "hint": "set the clock",
        }
        for child in (3, 5)
    ]

    code, printed = checked(table, package)
    assert code == 1
    assert "not as the table says: 2 faults" in printed
    assert printed.count("is no younger than") == 2
    assert printed.count("hint: set the clock") == 1
