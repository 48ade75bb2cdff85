"""Paimon's tables keep the contract of a format."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from firnline.model.files import FileKind
from firnline.testing.dated import copy_dated
from firnline.testing.formats import FormatContract, Make
from harness.lanes import by_lane
from harness.paimon.reader import TableReader

MARK = {"nobodyKnows": {"this": [1, None]}}
MARKED = ("snapshot/snapshot-*", "tag/tag-*", "schema/schema-*", "branch/*/snapshot/snapshot-*")


@dataclass(frozen=True)
class RealTable:
    """A copy of a table that Paimon itself made."""

    folder: Path

    @property
    def location(self) -> str:
        return str(self.folder)

    @property
    def vital(self) -> tuple[str, ...]:
        return tuple(str(self.folder / each) for each in ("schema/schema-0", "snapshot/snapshot-1", "tag/tag-two"))

    def needed(self) -> set[str]:
        return {path for each in TableReader(self.folder).reachable().values() for path in each.files - each.missing}

    def mark(self) -> None:
        for path in self._files():
            path.write_text(json.dumps({**json.loads(path.read_text()), **MARK}))

    def marked(self) -> bool:
        return all(MARK.items() <= json.loads(path.read_text()).items() for path in self._files())

    def _files(self) -> list[Path]:
        return [path for pattern in MARKED for path in self.folder.glob(pattern)]


@pytest.mark.full("test_both_engines_agree")
class TestPaimon(FormatContract):
    kit_name = "paimon"
    every = by_lane(7, 14, 1)
    may_be_gone = frozenset({FileKind.CHANGES_LIST})

    @pytest.fixture
    def make(self, made: Path) -> Make:
        def copied(folder: Path) -> RealTable:
            shutil.copytree(made / "t", folder, copy_function=copy_dated)
            return RealTable(folder)

        return copied
