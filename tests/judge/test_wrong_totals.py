"""Tables that Iceberg's own Java writes with a wrong total in their summaries are sound, and are not refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firnline.app.places import places_of
from firnline.lake import Lake
from firnline.policy.parse import Section

from .jvm import Jvm
from .test_undo_after_cleaning import JavaTable

pytestmark = pytest.mark.xdist_group("judge-0")  # shares that group's JVM


@pytest.fixture
def java(judge: Jvm, quick_folder: Path) -> JavaTable:
    return JavaTable(judge, quick_folder)


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lake:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    return Lake(places_of(Section(), engine="local"))


def test_a_total_that_java_itself_got_wrong_is_no_reason_to_refuse_its_table(java: JavaTable, lake: Lake) -> None:
    """Java counts a file that it deletes once, however often a manifest had it; every later total is too large."""
    java.table.updateProperties().set("commit.manifest.min-count-to-merge", "2").commit()
    twice = java.file("twice")
    java.table.newAppend().appendFile(twice).appendFile(java.file("other")).commit()
    java.table.newAppend().appendFile(twice).commit()
    java.table.newDelete().deleteFile(twice).commit()
    java.table.newAppend().appendFile(java.file("last")).commit()
    last = java.document()["snapshots"][-1]
    assert last["summary"]["total-data-files"] == "3"
    assert len(java.read(last["snapshot-id"])) == 2
    assert lake.check(java.location).sound
    done: Any = lake.expire(java.location, older_than=2**45, retain_last=1, grace="0s", blast_radius=1.0)
    assert done.state == "done"
    assert len(java.read(last["snapshot-id"])) == 2
    assert lake.check(java.location).sound
