"""The toy's way through the whole command line, with nothing but its package on the path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firnline.cli.main import run
from firnline.errors import RefusedForSafety
from firnline.model.times import DAY_MS
from firnline.testing.dated import Clock
from firnline.testing.folder_process import FolderProcess

from .conftest import PACKAGE
from .tables import ToyTable

Firnline = Callable[..., Any]
OLD = ("--older-than", "2100-01-01T00:00:00Z", "--retain-last", "1", "--blast-radius", "100%")


@pytest.fixture
def table(tmp_path: Path) -> ToyTable:
    return ToyTable.make(tmp_path / "toy-table")


@pytest.fixture
def firnline(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Firnline:
    """Runs a command in this process, which found the package as any other does, and returns what it says as JSON."""
    for name in ("HOME", "PYICEBERG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def said(*words: str, code: int = 0) -> Any:
        capsys.readouterr()
        ended, (out, err) = run(list(words)), capsys.readouterr()
        assert ended == code, err
        return json.loads(err if code else out)

    return said


@pytest.fixture
def alone(tmp_path: Path) -> Firnline:
    """Runs a command in a process of its own and returns what it says as JSON; of `sql` the lines."""
    around = {**os.environ, "PYTHONPATH": str(PACKAGE), "HOME": str(tmp_path), "PYICEBERG_HOME": str(tmp_path)}

    def said(*words: str, code: int = 0) -> Any:
        command = [str(Path(sys.executable).with_name("firnline")), *words]
        ended = subprocess.run(
            command, check=False, env=around, cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        assert ended.returncode == code, ended.stderr
        told = ended.stderr if code else ended.stdout
        return json.loads(told) if "--json" in words else told.splitlines()

    return said


def test_plan_and_why(table: ToyTable, firnline: Firnline, alone: Firnline) -> None:
    plan = alone("plan", table.location, *OLD, "--json")
    assert (plan["format"], plan["expire"]) == ("toy", ["1", "3", "4"])
    assert plan["victims"]["by_kind"] == {"data": {"files": 1, "bytes": 13}, "manifest": {"files": 3, "bytes": 80}}
    assert "tag two" in str(firnline("why", table.location, "2", "--json"))
    shared = firnline("why", table.location, f"{table.location}/files/data-2", "--json")
    assert {each["snapshot"] for each in shared["needed_by"]} == {"2", "3"}


def test_expire_undo_and_purge(table: ToyTable, firnline: Firnline) -> None:
    before = table.needed()
    run = firnline("expire", table.location, *OLD, "--grace", "1h", "--yes", "--json")
    assert sorted(run["expired"]) == ["1", "3", "4"]
    assert firnline("undo", run["run"], "--json")["state"] == "undone"
    assert table.needed() == before
    again = firnline("expire", table.location, *OLD, "--grace", "0s", "--yes", "--json")
    assert again["state"] == "done"
    gone = {path for path in before if not os.path.exists(path)}
    assert gone == before - table.needed()
    assert len(gone) == 4
    assert firnline("check", table.location, "--json")["sound"]
    assert [each["state"] for each in firnline("runs", table.location, "--json")["runs"]] == ["undone", "done"]


def test_orphans_of_a_table_and_of_a_folder(table: ToyTable, firnline: Firnline) -> None:
    left = table.folder / "files" / "left-behind"
    left.write_bytes(b"nobody needs it")
    classes = firnline("orphans", table.location, "--dry-run", "--json")["classes"]
    assert {name: each["files"] for name, each in classes.items() if each["files"]} == {"needed": 11, "young": 1}
    process, around = FolderProcess(clock=Clock(10 * DAY_MS)), str(table.folder.parent)
    with pytest.raises(RefusedForSafety, match=f"metadata of the table toy-{table.folder.name}"):
        process.orphans(around, dry_run=True)
    for place, also in ((table.location, ()), (around, (table.location,))):
        plan, _ = process.orphans(place, also=also, dry_run=True)
        assert plan.victims.all.files == 1
    _, ended = process.orphans(table.location, grace="0s", consent=lambda plan: True)
    assert ended is not None
    assert ended.run.is_finished
    assert not left.exists()
    assert firnline("check", table.location, "--json")["sound"]


def test_tags_and_holds(table: ToyTable, firnline: Firnline) -> None:
    firnline("tag", "add", table.location, "three", "3", "--json")
    firnline("hold", "add", table.location, "case", "4", "--why", "a test", "--json")
    assert firnline("plan", table.location, *OLD, "--json")["expire"] == ["1"]
    firnline("tag", "remove", table.location, "three", "--json")
    firnline("hold", "release", table.location, "case", "--json")
    assert firnline("plan", table.location, *OLD, "--json")["expire"] == ["1", "3", "4"]


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_sql(table: ToyTable, alone: Firnline) -> None:
    """Spark plans and reads in processes of its own: there too the entry point leads to the format."""
    alone("expire", table.location, *OLD, "--grace", "1h", "--yes", "--json")
    name = f"`{table.location}`"
    asked = (
        f"SELECT count(*) AS live FROM {name}.snapshots; SELECT count(*) AS every FROM {name}.all_snapshots; "
        f"SELECT file_path FROM {name}.files ORDER BY 1; SELECT count(*) AS lists FROM {name}.manifests; "
        f"SELECT name FROM {name}.refs ORDER BY 1; SELECT state FROM {name}.runs"
    )
    said = "\n".join(alone("sql", asked))
    assert "data-4" in said
    assert "data-5" in said
    assert "committed" in said
    assert "two" in said
