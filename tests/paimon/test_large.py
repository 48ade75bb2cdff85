"""Large tables that are written directly: other readers see in them what their shape says."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import fastavro

from firnline.testing.folder_process import FolderProcess
from harness.large.tables import SHAPES, START_MS, STEP_MS
from harness.paimon.java_table import JavaTable
from harness.paimon.large import LargePaimon
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

SHAPE = SHAPES["tiny"]


def test_a_plan_finds_the_victims_that_the_shape_has(tmp_path: Path) -> None:
    table, last = LargePaimon(tmp_path / "t", SHAPE), SHAPE.snapshots // 2
    table.write()
    plan = FolderProcess().plan(str(table.folder), older_than=START_MS + last * STEP_MS + 1, retain_last=1).to_json()
    assert {kind: each["files"] for kind, each in plan["victims"]["by_kind"].items()} == table.victims(last)
    manifests = [path for path in (table.folder / "manifest").iterdir() if "list" not in path.name]
    assert sum(len(list(fastavro.reader(BytesIO(path.read_bytes())))) for path in manifests) == table.entries()


def test_paimon_itself_reads_them(both: Paimon, tmp_path: Path) -> None:
    table = LargePaimon(tmp_path / "t", SHAPE)
    table.write()
    splits = JavaTable(both.java, table.folder).open(MAIN).newScan().plan().splits()
    names = [file.fileName() for split in splits for file in split.dataFiles()]
    held = json.loads((table.folder / "snapshot" / f"snapshot-{SHAPE.snapshots}").read_text())["totalRecordCount"]
    assert len(set(names)) == len(names) == held
