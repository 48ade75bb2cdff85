"""The same questions asked of Iceberg's own tables: answered before the expiry, lost after it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from firnline.lake import open_lake

from .conftest import enter
from .lakes import TABLE, build, expire

ASKING = Path(__file__).with_name("plain_iceberg.py")


@pytest.mark.skipif(not os.environ.get("FIRNLINE_FULL"), reason="a session of Iceberg's own: make test-full runs it")
@pytest.mark.spark
def test_plain_iceberg_loses_every_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(tmp_path, monkeypatch)
    facts = build(tmp_path)
    expire()
    after = open_lake().places.source(TABLE).load().fence
    asked = {
        "metadata": {"before": facts.metadata, "after": after},
        "questions": facts.questions("snapshots", "entries"),
        "rows": f"SELECT count(*), sum(x) FROM {TABLE}",
    }
    done = subprocess.run(
        [sys.executable, str(ASKING)],
        check=True,
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["after"] == {
        "file added": [],
        "by application": [],
        "partition added": [],
        "partition removed": [],
        "commits": [0],
        "files": [None],
        "records removed": [None],
        "bytes": [None],
    }
    instants = ("file added", "partition added")
    told = {name: [answer] for name, answer in facts.answers.items() if name not in instants}
    assert {name: answer for name, answer in said["before"].items() if name not in instants} == told
    assert all(len(said["before"][name]) == 1 for name in instants)
    assert said["rows"] == [[5, 3]]
    assert "iceberg" in said["plan"].lower()
    assert "firnline[" not in said["plan"]
