"""What a repository does not have is said, and never passes for done: retention of its own, and a catalog."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from firnline.cli.main import main
from firnline.errors import RefusedForSafety, UnsupportedFormat, UsageError
from firnline.testing.folder_process import FolderProcess

from .repositories import lying

FOLDERS = ("chunks", "manifests", "snapshots", "transactions", "refs/branch.main")


def shown(capsys: pytest.CaptureFixture[str], *said: str) -> str:
    with pytest.raises(SystemExit):
        main(list(said))
    return capsys.readouterr().out


def test_without_the_library_no_run_is_begun(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run was written down, waited for half of its grace, and only its commit said what is missing."""
    monkeypatch.setitem(sys.modules, "icechunk", None)
    process = FolderProcess()
    for grace in ("24h", "0s"):
        with pytest.raises(UnsupportedFormat, match="is not changed here") as refused:
            process.expire(str(small), keep={"last": 1}, grace=grace, blast_radius=1.0)
        assert "firnline[icechunk]" in refused.value.hint
    assert process.plan(str(small), keep={"last": 1}).plan.expire
    assert process.runs(str(small)) == []


@pytest.mark.parametrize("policy", ["", "keep: {within: 90d}"])
def test_nothing_is_adopted_where_there_is_no_retention(small: Path, policy: str) -> None:
    with pytest.raises(UsageError, match="icechunk has no retention that others go by"):
        FolderProcess(policy=policy).adopt(str(small))


def test_a_repository_is_not_purged_as_a_dropped_table(small: Path) -> None:
    process, before = FolderProcess(), [lying(small, each) for each in FOLDERS]
    (found,) = process.dropped(str(small.parent))
    assert (found.uuid, found.folder) == (None, str(small))
    assert found.problem is not None
    with pytest.raises(RefusedForSafety, match=f"can be purged: {re.escape(found.problem)}"):
        process.purge_dropped(str(small.parent), str(small), consent=lambda plan: True)
    assert [lying(small, each) for each in FOLDERS] == before


def test_no_purge_is_offered_that_would_be_refused(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = shown(capsys, "dropped", str(small.parent))
    assert f"{small}: " in told
    assert "--purge" not in told


def test_a_plan_without_a_rule_does_not_speak_of_retention(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = shown(capsys, "plan", str(small))
    assert "policy: no rule is written: " in told
    assert "retention" not in told
