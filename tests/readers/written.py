"""Checkpoints as Spark writes them, without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.neighbours.lakes import RealLake

HEAD = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1794960467735,"conf":{}}\n'


def offset(snapshot: int, **said: object) -> str:
    return json.dumps({"version": 1, "snapshot_id": snapshot, "position": 1, "scan_all_files": False, **said})


@dataclass(frozen=True)
class WrittenCheckpoint:
    """A checkpoint in a folder; every batch that is written has its commit, unless told otherwise."""

    folder: Path

    def begin(self, snapshot: int, source: int = 0) -> WrittenCheckpoint:
        return self.write(f"sources/{source}/offsets/0", offset(snapshot))

    def batch(self, number: int, *lines: str | int, committed: bool = True) -> WrittenCheckpoint:
        told = [offset(each) if isinstance(each, int) else each for each in lines]
        self.write(f"offsets/{number}", HEAD + "\n".join(told))
        return self.write(f"commits/{number}", 'v1\n{"nextBatchWatermarkMs":0}') if committed else self

    def write(self, name: str, text: str | bytes) -> WrittenCheckpoint:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self


def checkpoint(lake: RealLake, name: str = "job") -> WrittenCheckpoint:
    folder = lake.folder / "checkpoints" / name
    folder.mkdir(parents=True, exist_ok=True)
    return WrittenCheckpoint(folder)


def snapshots(lake: RealLake, table: str = "a") -> Sequence[int]:
    return [each.snapshot_id for each in lake.table(table).snapshots()]


def grown(lake: RealLake, table: str = "a", many: int = 4) -> Sequence[int]:
    """Makes a table of some appends, and returns its snapshots."""
    lake.create(table)
    for number in range(many):
        lake.append(table, number)
    return snapshots(lake, table)
