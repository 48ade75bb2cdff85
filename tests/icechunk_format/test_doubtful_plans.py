"""Times that clocks contradict stop a plan and a commit. Who only asks why is told, and no listing is made for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firnline.errors import RefusedForSafety
from firnline.formats.icechunk.names import SNAPSHOTS
from firnline.journal.events import RunState
from firnline.ops.runs.status import RunStatus
from firnline.testing.dated import Clock
from firnline.testing.faults import CountingFault
from firnline.testing.folder_process import FolderProcess

from .growing import SPECS
from .redating import DAY_US, HOUR_US, aged, dated, line_of, read

ASKED: dict[str, Any] = {"older_than": "2100-01-01T00:00:00Z", "retain_last": 1, "blast_radius": 1.0}
HOUR_MS = 3_600_000


@pytest.fixture(params=SPECS)
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    line_of(tmp_path, 4, request.param)
    aged(tmp_path, DAY_US)
    return tmp_path


def below_the_tip(folder: Path) -> str:
    found = read(folder)
    return list(found.ancestry(found.branches["main"]))[1].id


def make_doubtful(folder: Path, snapshot: str) -> None:
    dated(folder, snapshot, read(folder).snapshots[snapshot].flushed_us + HOUR_US)


def test_a_plan_is_refused_and_a_question_is_answered(folder: Path) -> None:
    slow = below_the_tip(folder)
    make_doubtful(folder, slow)
    process = FolderProcess()
    with pytest.raises(RefusedForSafety, match=f"in doubt: {slow} is of .* later by the store's clock"):
        process.plan(str(folder), **ASKED)
    assert not process.why(str(folder), slow, **ASKED).kept
    process = FolderProcess(policy=f"trust-snapshots: ['{slow}']")
    assert slow in {each.id for each in process.plan(str(folder), **ASKED).plan.expire}


def test_a_commit_is_refused_if_the_doubt_came_after_the_plan(folder: Path) -> None:
    clock, slow = Clock(), below_the_tip(folder)
    process = FolderProcess(clock=clock)
    begun = process.expire(str(folder), grace="1h", **ASKED)
    assert isinstance(begun, RunStatus)
    make_doubtful(folder, slow)
    clock.advance(2 * HOUR_MS)
    before = read(folder).snapshots
    with pytest.raises(RefusedForSafety, match=f"in doubt: {slow}"):
        process.commit(str(begun.run.id))
    assert [each.run.state for each in process.resume(str(folder))] == [RunState.PLANNED]
    assert read(folder).snapshots == before


def test_only_who_acts_lists_the_snapshots_for_it(folder: Path) -> None:
    """Where the operator vouches for all times there is nothing to compare: the listing is the difference."""
    assert _listings(folder, "plan") == _listings(folder, "plan", "trust-snapshots: ['*']") + 1
    assert _listings(folder, "why") == _listings(folder, "why", "trust-snapshots: ['*']")


def _listings(folder: Path, verb: str, policy: str = "") -> int:
    asked = CountingFault()
    process = FolderProcess(asked, policy=policy)
    if verb == "plan":
        process.plan(str(folder), **ASKED)
    else:
        process.why(str(folder), below_the_tip(folder), **ASKED)
    return sum(each == "list" and SNAPSHOTS in key for each, key in asked.trace)
