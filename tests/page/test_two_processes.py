"""Two processes at one run: whatever both try at one instant, one of them acts, and the other is told why not."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

from firnline.errors import LeaseHeld, UsageError
from firnline.journal.events import RunState
from firnline.lake import open_lake
from firnline.testing.tables import SmallTable
from harness.lanes import by_lane

from .conftest import TABLE, TOKEN, OpenPage

if TYPE_CHECKING:
    from firnline.ops.runs.status import RunStatus

FIRNLINE = (str(Path(sys.executable).parent / "firnline"),)
pytestmark = pytest.mark.slow


@contextmanager
def serving() -> Iterator[str]:
    """Serves the page of this lake in a process of its own."""
    told = {**os.environ, "FIRNLINE_PAGE_TOKEN": TOKEN}
    with subprocess.Popen(
        [*FIRNLINE, "serve", "--listen", "127.0.0.1:0"], env=told, stderr=subprocess.PIPE, text=True
    ) as page:
        assert page.stderr is not None
        try:
            yield page.stderr.readline().strip().rstrip("/")
        finally:
            page.terminate()


def approve(address: str, run: str, who: str) -> requests.Response:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return requests.post(f"{address}/api/do/approve", json={"run": run, "by": who}, headers=headers, timeout=60)


WAITING = """
import sys
from firnline.cli.main import run
from firnline.lake import open_lake
open_lake().plan(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
sys.exit(run(sys.argv[2:]))
"""


class Command:
    """A command in a process of its own that has loaded all it needs, and waits for a word to begin."""

    def __init__(self, *words: str) -> None:
        told = [sys.executable, "-c", WAITING, TABLE, *words]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(told, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def begin(self) -> tuple[int, str]:
        """Returns how the command ended, and what it said of a failure."""
        _, said = self._process.communicate("go\n", timeout=120)
        return self._process.returncode, said


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Returns what each came to; all begin at one instant."""
    ready = threading.Barrier(len(acts))

    def begun(act: Callable[[], Any]) -> Any:
        ready.wait()
        return act()

    with ThreadPoolExecutor(len(acts)) as several:
        return list(several.map(begun, acts))


def saved() -> str:
    run = open_lake().plan(TABLE, save=True).plan.run
    assert run is not None
    return run


def ended(run: str) -> RunStatus:
    """Returns the run once it is committed. Fails where it stays where it is: then nobody acted."""
    lake, until = open_lake(), time.monotonic() + 30
    while (found := lake.run(run)).state is not RunState.COMMITTED:
        assert time.monotonic() < until, [(e.state, e.detail) for e in found.run.events]
        time.sleep(0.05)
    return found


def undone(run: str) -> None:
    """Undoes a run once the process that carried it out has let go of the table."""
    until = time.monotonic() + 30
    while True:
        try:
            open_lake().undo(run)
        except LeaseHeld:
            assert time.monotonic() < until
            time.sleep(0.1)
        else:
            return


HOLDING = """
import sys
from firnline.lake import open_lake
work = open_lake().places.table_context(sys.argv[1])
with work.lease(work.source.load(), False):
    print("ready", flush=True)
    sys.stdin.readline()
"""


def test_an_approved_run_goes_on_once_another_process_lets_go_of_the_table(page: OpenPage) -> None:
    run, pipe = saved(), subprocess.PIPE
    told = [sys.executable, "-c", HOLDING, TABLE]
    with subprocess.Popen(told, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        assert approve(page.address, run, "ann").status_code == 200
        until = time.monotonic() + 30
        while "works on this table until" not in page.get("/run", params={"id": run}).text:
            assert time.monotonic() < until, "the page says why it waits"
            time.sleep(0.05)
        assert open_lake().run(run).state is RunState.PLANNED
        other.communicate("end\n")
    assert len(ended(run).run.attempts) == 1


def test_a_second_approval_is_refused_whoever_looked_first(table: SmallTable) -> None:
    """Both looked before either approved: the record itself takes one."""
    run, lake = saved(), open_lake()
    lake.approve(run, by="bob")
    with pytest.raises(UsageError, match="approved before, by bob"):
        lake.approve(run, by="ann")
    assert [each.detail.get("by") for each in lake.run(run).run.events] == [None, "bob"]


@pytest.mark.full
def test_of_two_pages_that_approve_at_one_instant_one_acts(table: SmallTable) -> None:
    before = len(open_lake().graph(TABLE).before)
    with serving() as one, serving() as other:
        for each in (one, other):
            assert requests.get(f"{each}/api/graph", params={"name": TABLE}, timeout=60).status_code == 200
        for _ in range(3):
            run = saved()
            answers = at_once(partial(approve, one, run, "ann"), partial(approve, other, run, "bob"))
            (refused,) = [each for each in answers if each.status_code != 200]
            assert refused.status_code in (400, 409), refused.text
            assert refused.json()["error"]["message"]
            found = ended(run)
            approvals = [e.detail["by"] for e in found.run.events if e.state is RunState.PLANNED and e.detail.get("by")]
            assert approvals == ["ann" if answers[0].status_code == 200 else "bob"]
            assert len(found.run.attempts) == 1
            undone(run)
    assert len(open_lake().graph(TABLE).before) == before
    assert subprocess.run([*FIRNLINE, "audit", "verify"], capture_output=True, check=False).returncode == 0


def test_of_a_page_and_a_command_at_one_instant_one_acts(table: SmallTable) -> None:
    with serving() as page:
        for _ in range(by_lane(1, 1, 3)):
            run = saved()
            command = Command("commit", run)
            answer, (code, told) = at_once(partial(approve, page, run, "ann"), command.begin)
            assert len(ended(run).run.attempts) == 1
            assert answer.status_code in (200, 400, 409), answer.text
            assert answer.status_code == 200 or code == 0, (answer.text, told)
            assert code == 0 or "error: " in told
            undone(run)


@pytest.mark.full
def test_of_a_page_and_another_run_of_the_table_one_expires(page: OpenPage) -> None:
    """`expire` plans a run of its own: what both would expire goes once."""
    run = saved()
    going = open_lake().run(run).run.plan["expire"]
    command = Command("expire", TABLE, "--yes")
    answer, (code, told) = at_once(lambda: approve(page.address, run, "ann"), command.begin)
    assert answer.status_code == 200, answer.text
    until = time.monotonic() + 30
    while page.get("/run", params={"id": run}).text.count("data-live"):
        assert time.monotonic() < until
        time.sleep(0.05)
    runs = open_lake().runs(TABLE)
    removed = [each.run.removal.ids for each in runs if each.run.removal is not None]
    assert sorted(name for each in removed for name in each) == sorted(going), (code, told)
    assert code == 0 or "error: " in told
