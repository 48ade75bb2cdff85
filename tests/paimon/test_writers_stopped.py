"""Writers that expire on their own: a hold on the table stops them, and jobs that run are told of until they know."""

from __future__ import annotations

from typing import Any

import pytest

from firnline.model.holds import Hold
from firnline.ops.marks.adopt import adopt
from firnline.ops.marks.holds import add_hold, release_hold
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .small import Copy, row

EAGER = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
POLICY = "keep: {last: 2}"


class Job:
    """A writer with the options that it found when it started; it expires at every commit."""

    def __init__(self, both: Paimon, table: JavaTable, branch: str = MAIN, user: str = "job") -> None:
        self.table, self.opened, self.user, self.commits = table, table.open(branch), user, 0
        self.io = both.java.paimon("disk.IOManager").create(str(table.folder.parent))

    def write(self, number: int) -> None:
        self.commits += 1
        write, commit = self.opened.newWrite(self.user).withIOManager(self.io), self.opened.newCommit(self.user)
        write.write(self.table.rows.row(row(number, "more"), "+I"))
        commit.commit(self.commits, write.prepareCommit(True, self.commits))
        write.close()
        commit.close()


@pytest.fixture
def eager(both: Paimon, copy: Copy) -> JavaTable:
    table = JavaTable(both.java, copy.folder / "t")
    for name, value in EAGER.items():
        table.set_option(name, value)
    return table


def _snapshots(copy: Copy, branch: str = "") -> set[str]:
    return {path.name for path in (copy.folder / "t" / branch / "snapshot").glob("snapshot-*")}


def _options(table: JavaTable, branch: str = MAIN) -> dict[str, str]:
    return dict(table.open(branch).options())


def test_the_next_commit_of_java_expires_nothing_under_a_hold_on_the_table(
    both: Paimon, copy: Copy, eager: JavaTable
) -> None:
    before, tags = _options(eager), (copy.folder / "t/tag/tag-short").read_text()
    said = add_hold(copy.process().places.table_context(copy.table), Hold("all", "somebody", "a test", None))
    assert "restart" in said
    held = _snapshots(copy)
    Job(both, eager).write(30)
    assert held < _snapshots(copy)
    assert (copy.folder / "t/tag/tag-short").read_text() == tags
    add_hold(copy.process().places.table_context(copy.table), Hold("more", "somebody", "a test", None))
    release_hold(copy.process().places.table_context(copy.table), "all")
    Job(both, eager).write(31)
    assert held < _snapshots(copy)
    release_hold(copy.process().places.table_context(copy.table), "more")
    assert _options(eager) == before
    Job(both, eager).write(32)
    assert len(_snapshots(copy)) < len(held)


def test_a_hold_puts_back_what_each_branch_had(both: Paimon, copy: Copy, eager: JavaTable) -> None:
    before = {branch: _options(eager, branch) for branch in (MAIN, "side")}
    assert before[MAIN] != before["side"]
    add_hold(copy.process().places.table_context(copy.table), Hold("all", "somebody", "a test", None))
    assert eager.open("side").coreOptions().snapshotNumRetainMin() == 2**31 - 1
    eager.set_option("snapshot.num-retained.min", "77")
    release_hold(copy.process().places.table_context(copy.table), "all")
    assert _options(eager, "side") == before["side"]
    changed = {"snapshot.num-retained.min": "77", "snapshot.num-retained.max": str(2**31 - 1)}
    assert _options(eager) == {**before[MAIN], **changed}, "the lowest and the highest number never contradict"


def test_a_table_that_is_adopted_under_a_hold_stays_so(copy: Copy, eager: JavaTable) -> None:
    work = copy.process(policy=POLICY).places.table_context(copy.table)
    add_hold(work, Hold("all", "somebody", "a test", None))
    assert adopt(work)
    release_hold(work, "all")
    options = eager.open().coreOptions()
    assert options.snapshotNumRetainMin() == options.snapshotNumRetainMax() == 2**31 - 1
    assert options.tagTimeExpireEnabled()
    assert adopt(work) == ()


def _late(copy: Copy) -> list[Any]:
    notes: list[str] = copy.process().plan(copy.table).to_json()["notes"]
    return [note for note in notes if "restart" in note]


def test_an_adopted_table_is_warned_of_until_its_jobs_were_started_again(
    both: Paimon, copy: Copy, eager: JavaTable
) -> None:
    old = Job(both, eager, user="old")
    adopt(copy.process(policy=POLICY).places.table_context(copy.table))
    (note,) = _late(copy)
    assert "main" in note
    before = _snapshots(copy)
    old.write(30)
    assert not before <= _snapshots(copy), "a job that runs still expires"
    assert _late(copy)
    Job(both, eager, user="new").write(31)
    assert _late(copy), "the other job has not been started again"
    Job(both, eager, user="old").write(32)
    Job(both, eager, "side").write(33)
    assert _late(copy) == []
