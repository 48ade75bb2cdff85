"""Tags and branches that are dropped with the files that only they held, in runs that can be undone.

FIRNLINE_PAIMON_DROPS sets how many random tables lose a branch or a tag (4 unless told, 100 in the long lane).
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from firnline.cli.main import run as firnline
from firnline.errors import FirnlineError, RefusedForSafety, UsageError
from firnline.formats.paimon.table import PaimonFormat
from firnline.model.holds import Hold
from firnline.ops.marks.holds import add_hold, release_hold
from firnline.stores.objects import ObjectStores
from firnline.testing.faults import Acting, CountingFault, Fault, When
from firnline.testing.folder_process import FolderProcess
from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import TAG, PaimonRoot
from harness.paimon.python_table import PythonTable
from harness.paimon.rows import Rows, java_rows, python_rows
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon, PaimonWorld

from .cutting import FULL, WHEN, cut_run, cut_undo
from .small import Copy, row
from .test_interference import Before
from .worlds import Seen, aside, compare, grown, is_sound, table

COUNT = int(os.environ.get("FIRNLINE_PAIMON_DROPS", "100" if FULL else "4"))
FIRST = 300
AT_ONCE = {"grace": "0s", "sole_writer": True, "blast_radius": 1.0}
LATER = {"grace": "1m", "blast_radius": 1.0}


def drop_side(copy: Copy, fault: Fault | None = None) -> None:
    copy.process(fault).drop(copy.table, ["side"], **AT_ONCE)


def garbage(copy: Copy) -> set[str]:
    return {path for path in copy.reader().orphans() if "/_firnline/" not in path}


def rows_of(both: Paimon, copy: Copy) -> Rows:
    return java_rows(JavaTable(both.java, copy.folder / "t"))


# ---------------------------------------------------------------- branches


def test_a_branch_goes_with_the_files_that_only_it_held(both: Paimon, copy: Copy) -> None:
    before, rows, waste = copy.reader().reachable(), rows_of(both, copy), garbage(copy)
    only = {path for root, each in before.items() if root.branch == "side" for path in each.files}
    only -= {path for root, each in before.items() if root.branch == MAIN for path in each.files}
    drop_side(copy)
    assert not (copy.folder / "t/branch/branch-side").exists()
    assert not {path for path in only if Path(path).exists()}
    assert any("/bucket-0/" in path for path in only)
    assert not copy.missing()
    assert garbage(copy) == waste
    assert rows_of(both, copy) == {root: each for root, each in rows.items() if root.branch == MAIN}
    assert copy.process().check(copy.table).sound
    names = JavaTable(both.java, copy.folder / "t").open().branchManager().branches()
    assert list(names) == []


def test_the_plan_says_what_goes_and_that_nothing_else_does(copy: Copy) -> None:
    shown = []
    copy.process().drop(copy.table, ["side"], **LATER, confirm=shown.append)
    (plan,) = shown
    assert sorted(each.id for each in plan.expire) == ["side:2", "side:3"]
    assert plan.expire_refs == ("side", "side:two")
    assert plan.policy == "drop side; nothing else goes"
    assert all(each.reasons == ("stays this run drops side and nothing else",) for each in plan.keep)
    assert plan.victims.all.files > 0


def test_an_undo_brings_a_branch_back_as_it_was(both: Paimon, copy: Copy) -> None:
    before, rows = copy.picture(), rows_of(both, copy)
    ended = copy.process().drop(copy.table, ["side"], **LATER)
    assert not (copy.folder / "t/branch/branch-side").exists()
    assert copy.process().undo(str(ended.run.id)).state == "undone"
    assert copy.picture() == before
    assert rows_of(both, copy) == rows
    JavaTable(both.java, copy.folder / "t").write("side", [row(10, "ten")])
    assert not copy.missing()


def test_an_undo_is_refused_where_the_branch_was_made_again(both: Paimon, copy: Copy) -> None:
    ended = copy.process().drop(copy.table, ["side"], **LATER)
    JavaTable(both.java, copy.folder / "t").create_branch("side", "two")
    with pytest.raises(RefusedForSafety, match="a branch side has been made since"):
        copy.process().undo(str(ended.run.id))
    copy.clock.advance(61_000)
    copy.process().purge(str(ended.run.id))
    assert not copy.missing()


def test_a_branch_without_snapshots_goes(both: Paimon, copy: Copy) -> None:
    JavaTable(both.java, copy.folder / "t").create_branch("empty", None)
    before = copy.picture()
    ended = copy.process().drop(copy.table, ["empty"], **LATER)
    assert not (copy.folder / "t/branch/branch-empty").exists()
    copy.process().undo(str(ended.run.id))
    assert copy.picture() == before


def test_a_held_tag_stays(outlived: Copy) -> None:
    work = outlived.process().places.table_context(outlived.table)
    add_hold(work, Hold("audit", "somebody", "a test", "4"))
    with pytest.raises(UsageError, match="belongs to a hold"):
        outlived.process().drop(outlived.table, ["firnline-hold-audit"], **AT_ONCE)
    outlived.process().drop(outlived.table, ["short"], **AT_ONCE)
    assert not outlived.missing(), "the hold's own tag keeps the snapshot"
    release_hold(work, "audit")
    assert outlived.process().plan(outlived.table).to_json()["expire"] == ["4"]


def test_a_hold_without_a_tag_keeps_what_a_tag_holds(outlived: Copy) -> None:
    """A snapshot that was held while it was out of the table has no tag of the hold's; undone, it is there again."""
    ended = outlived.process().drop(outlived.table, ["short"], **LATER)
    add_hold(outlived.process().places.table_context(outlived.table), Hold("late", "somebody", "a test", "4"))
    outlived.process().undo(str(ended.run.id))
    with pytest.raises(RefusedForSafety, match="the hold late is on 4"):
        outlived.process().drop(outlived.table, ["short"], **AT_ONCE)


def test_what_is_held_after_the_drop_outlives_the_purge(copy: Copy) -> None:
    """A hold on a snapshot that a run took out keeps its files, although the branch is gone, schema and all."""
    needs = copy.reader().reachable()[PaimonRoot("side", "snapshot", "3")].data
    ended = copy.process().drop(copy.table, ["side"], **LATER)
    add_hold(copy.process().places.table_context(copy.table), Hold("late", "somebody", "a test", "side:3"))
    copy.clock.advance(61_000)
    copy.process().purge(str(ended.run.id))
    assert all(Path(path).exists() for path in needs)
    assert not copy.missing()


def test_what_is_no_branch_is_refused(both: Paimon, copy: Copy) -> None:
    before = copy.picture()
    for name in ("main", "nobody", ""):
        with pytest.raises(UsageError):
            copy.process().drop(copy.table, [name], **AT_ONCE)
    stranger = copy.folder / "t/branch/branch-side/snapshot/.snapshot-9.tmp"
    stranger.write_text("half")
    with pytest.raises(RefusedForSafety, match=r"snapshot-9\.tmp"):
        drop_side(copy)
    stranger.unlink()
    assert copy.picture() == before


def test_a_writer_that_begins_anew_in_a_branch_that_is_going_is_seen(both: Paimon, copy: Copy) -> None:
    """It finds no snapshot, and gives its own a number that went just before."""
    table = JavaTable(both.java, copy.folder / "t")
    table.create_branch("young", None)
    table.write("young", [row(21, "once")])
    table.write("young", [row(22, "twice")])
    acting = Before("delete", "branch-young/schema/schema-0", lambda: table.write("young", [row(23, "anew")]))
    with pytest.raises(RefusedForSafety, match="young"):
        copy.process(acting).drop(copy.table, ["young"], **LATER)
    assert acting.acted
    assert layout.snapshots(copy.folder / "t", "young") == [1, 2]
    first = layout.document(copy.folder / "t/branch/branch-young/snapshot/snapshot-1")
    assert first["totalRecordCount"] == 1
    assert not copy.missing()
    assert copy.process().check(copy.table).sound


def test_a_hint_that_is_no_text_goes_with_its_branch(copy: Copy) -> None:
    (copy.folder / "t/branch/branch-side/snapshot/LATEST").write_bytes(b"\xff\xfe")
    drop_side(copy)
    assert not (copy.folder / "t/branch/branch-side").exists()


def test_a_branch_that_moved_on_since_the_plan_stays(both: Paimon, copy: Copy) -> None:
    side = JavaTable(both.java, copy.folder / "t")
    with pytest.raises(RefusedForSafety, match="moved on since the plan: side:4 came"):
        copy.process().drop(copy.table, ["side"], **AT_ONCE, confirm=lambda plan: side.write("side", [row(10, "ten")]))
    assert layout.snapshots(copy.folder / "t", "side") == [2, 3, 4]
    assert not copy.missing()


@pytest.mark.parametrize("when", WHEN)
def test_a_drop_is_cut_at_every_write(made: Path, when: When) -> None:
    effects = cut_run(made, drop_side, when)
    assert any("/branch/branch-side/schema/schema-0" in key for _, key in effects)


@pytest.mark.full
def test_its_undo_is_cut_at_every_write(made: Path) -> None:
    cut_undo(made, lambda copy: str(copy.process().drop(copy.table, ["side"], **LATER).run.id))


def test_somebody_writes_to_the_branch_between_any_two_steps(both: Paimon, made: Path) -> None:
    """The branch is gone as a whole, or all there with what was written; nothing else lost anything."""
    counting, copy = CountingFault(), Copy.of(made, "counted")
    copy.process(counting).drop(copy.table, ["side"], **LATER)
    copy.end()
    outcomes = set()
    for at in range(2, counting.requests, 1 if FULL else max(1, counting.requests // 7)):
        copy = Copy.of(made, f"writes-{at}")
        side = JavaTable(both.java, copy.folder / "t")
        acting = Acting(at, lambda side=side: _written(side))  # type: ignore[misc]
        with suppress(FirnlineError):
            copy.process(acting).drop(copy.table, ["side"], **LATER)
        copy.clock.advance(61_000)
        with suppress(FirnlineError):
            copy.process().resume(copy.table)
        left = layout.branches(copy.folder / "t")[1:]
        assert not copy.missing(), acting.before
        assert rows_of(both, copy)
        assert copy.process().check(copy.table).sound
        outcomes.add(tuple(left))
        copy.end()
    assert outcomes == {(), ("side",)}


def _written(side: JavaTable) -> None:
    """Paimon cannot write to a branch that is gone; it makes folders for its files, and leaves them."""
    with suppress(Py4JJavaError):
        side.write("side", [row(10, "ten")])


# ---------------------------------------------------------------- tags


@pytest.fixture
def outlived(copy: Copy) -> Copy:
    """The table after an expiry: the tags `two` and `short` are all that is left of their snapshots."""
    copy.expire()
    return copy


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["short", "two"])
def test_a_tag_goes_with_the_files_that_only_it_held(both: Paimon, outlived: Copy, name: str) -> None:
    before, rows, waste = outlived.reader().reachable(), rows_of(both, outlived), garbage(outlived)
    root = PaimonRoot(MAIN, TAG, name)
    only = before[root].files - {path for each, needs in before.items() if each != root for path in needs.files}
    ended = outlived.process().drop(outlived.table, [name], **LATER)
    assert ended.expired_refs == (name,)
    assert not (outlived.folder / f"t/tag/tag-{name}").exists()
    outlived.process().undo(str(ended.run.id))
    assert rows_of(both, outlived) == rows
    outlived.process().drop(outlived.table, [name], **AT_ONCE)
    assert not {path for path in only if Path(path).exists()}
    assert not outlived.missing()
    assert garbage(outlived) == waste
    assert rows_of(both, outlived) == {each: said for each, said in rows.items() if each != root}


def test_a_tag_of_a_snapshot_that_is_there_takes_no_file_along(copy: Copy) -> None:
    before = copy.picture()
    ended = copy.process().drop(copy.table, ["short"], **AT_ONCE)
    assert ended.expired == ()
    assert before.keys() - copy.picture().keys() == {"/tag/tag-short"}


@pytest.mark.full
@pytest.mark.parametrize("when", WHEN)
def test_the_drop_of_a_tag_is_cut_at_every_write(made: Path, when: When) -> None:
    copy = Copy.of(made, "outlived")
    copy.expire()
    cut_run(copy.folder, lambda each, fault: each.process(fault).drop(each.table, ["short"], **AT_ONCE), when)
    copy.end()


# ---------------------------------------------------------------- pypaimon, random tables, the command line


@pytest.mark.full
def test_pypaimon_reads_what_is_left(both: Paimon, tmp_path: Path) -> None:
    made = PythonTable(both.python, tmp_path / "t")
    made.create(Shape("python", True, ("p",), {"bucket": "1"}))
    for number in range(5):
        made.write(MAIN, [row(number, "row"), row(0, f"again {number}")])
    for number in range(3):
        made.tag(MAIN, f"tag{number}", number + 1)
    made.create_branch("side", "tag1")
    made.write("side", [row(7, "seven")])
    rows = python_rows(both.python, made.folder)
    process = FolderProcess()
    process.expire(str(made.folder), retain_last=1, older_than="2100-01-01T00:00:00Z", **AT_ONCE)
    for name in ("tag0", "side", "tag1"):
        process.drop(str(made.folder), [name], **AT_ONCE)
    after = python_rows(both.python, made.folder)
    assert {root.name for root in after} == {"5", "tag2"}
    assert after == {root: rows[root] for root in after}
    assert process.check(str(made.folder)).sound


@pytest.fixture(scope="module", params=range(FIRST, FIRST + COUNT))
def world(both: Paimon, request: pytest.FixtureRequest) -> Iterator[PaimonWorld]:
    with grown(both, request.param) as made:
        yield made


@pytest.mark.sampled(1)
def test_random_tables_lose_refs_and_nothing_else(both: Paimon, world: PaimonWorld) -> None:
    with aside(world):
        rng = random.Random(world.seed)
        state = PaimonFormat(ObjectStores({})).load("t", str(world.folder))
        branches = layout.branches(world.folder)[1:]
        tags = [name for name, ref in state.refs.items() if ref.kind == "tag" and ":" not in name]
        for name in [*branches, *rng.sample(tags, min(2, len(tags)))]:
            before = Seen.of(both, world)
            FolderProcess().drop(table(world), [name], **AT_ONCE)
            after = Seen.of(both, world)
            compare(before, after)
            assert is_sound(world, after)


def test_the_command_line_drops_and_undoes(copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    before = copy.picture()
    assert firnline(["branch", "drop", copy.table, "two", "--yes", "--json"]) == UsageError.exit_code
    assert firnline(["branch", "drop", copy.table, "side", "--json"]) == UsageError.exit_code, "nobody said yes"
    capsys.readouterr()
    assert firnline(["branch", "drop", copy.table, "side", "--dry-run"]) == 0
    assert "policy: drop side; nothing else goes" in capsys.readouterr().out
    assert copy.picture() == before
    assert firnline(["branch", "drop", copy.table, "side", "--yes", "--blast-radius", "100%", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["state"] == "committed"
    assert said["expired"] == ["side:2", "side:3"]
    assert firnline(["undo", said["run"], "--json"]) == 0
    assert copy.picture() == before


def test_a_tag_is_removed_at_once_unless_it_alone_holds_its_snapshot(
    outlived: Copy, capsys: pytest.CaptureFixture[str]
) -> None:
    remove = ["--yes", "--blast-radius", "100%", "--json"]
    assert firnline(["tag", "add", outlived.table, "mine", "--json"]) == 0
    capsys.readouterr()
    assert firnline(["tag", "remove", outlived.table, "mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"removed": "mine"}
    assert firnline(["tag", "remove", outlived.table, "short", *remove]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["state"], said["expired_refs"], said["expired"]) == ("committed", ["short"], ["4"])
