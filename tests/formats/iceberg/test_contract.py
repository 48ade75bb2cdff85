"""Iceberg's path tables keep the contract of a format."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firnline.testing.formats import FormatContract, Make
from firnline.testing.specimens.tables import local_path
from firnline.testing.tables import QuickFiles, SmallTable
from harness.lanes import by_lane

MARK = {"nobody-knows": {"this": [1, None]}}


@dataclass(frozen=True)
class PathTable:
    """A small table with appended, overwritten and deleted files, a tag and statistics."""

    table: SmallTable

    @staticmethod
    def make(folder: Path) -> PathTable:
        table = SmallTable(QuickFiles(), f"file://{folder}")
        first = table.append(2)
        table.statistics(first)
        table.tag("second", table.append(1))
        table.overwrite(table.live()[:1])
        table.delete_rows(table.live()[:1])
        table.append(1)
        table.publish()
        return PathTable(table)

    @property
    def location(self) -> str:
        return local_path(self.table.location)

    @property
    def vital(self) -> tuple[str, ...]:
        return (str(self._newest()),)

    def needed(self) -> set[str]:
        ids = [each["snapshot-id"] for each in self._said()["snapshots"]]
        return {local_path(path) for each in ids for path in self.table.reachable(each)}

    def mark(self) -> None:
        self.table.publish(edit=_mark)

    def marked(self) -> bool:
        said = self._said()
        parts = (said, *said["snapshots"], *said["refs"].values(), *said["schemas"])
        return all(MARK.items() <= each.items() for each in parts)

    def _said(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._newest().read_bytes())
        return found

    def _newest(self) -> Path:
        return max(
            Path(self.location, "metadata").glob("v*.metadata.json"), key=lambda path: int(path.name[1:].split(".")[0])
        )


def _mark(document: dict[str, Any]) -> None:
    for each in (document, *document["snapshots"], *document["refs"].values(), *document["schemas"]):
        each.update(MARK)


@pytest.mark.full("test_both_engines_agree")
class TestIceberg(FormatContract):
    kit_name = "iceberg"
    every = by_lane(2, 2, 1)  # of the cuts all remain: before one write, after the next

    @pytest.fixture
    def make(self) -> Make:
        return PathTable.make
