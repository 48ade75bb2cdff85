"""A commit that was cut is carried on hours later: what came between counts as if it had come before."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from firnline.app.places import now_ms
from firnline.errors import CollectionForbidden, RefusedForSafety
from firnline.model.holds import Hold
from firnline.model.times import HOUR_MS
from firnline.ops.marks.holds import add_hold
from firnline.testing.dated import date
from firnline.testing.faults import BothFaults, CountingFault, Died, Dying, Fault
from harness.paimon import layout
from harness.paimon.expiry import Retention
from harness.paimon.expiry import expire as paimons_expiry
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .small import Copy, row, seen_by_java
from .test_interference import Before, OnSnapshots, cut_after, expire

ENDINGS = [".begun", "/snapshot-2", "/snapshot-5"]


def left(copy: Copy) -> list[int]:
    return layout.snapshots(copy.folder / "t", MAIN)


# ---------------------------------------------------------------- consumers and holds


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_consumer_that_came_meanwhile_reads_on(both: Paimon, made: Path, copy: Copy, ending: str) -> None:
    """Whoever begins to read at a snapshot that was about to go finds it, and all after it."""
    cut_after(copy, made, expire, ending)
    JavaTable(both.java, copy.folder / "t").consumer(MAIN, "late", 3)
    copy.process().resume(copy.table)
    assert left(copy) == [2, 3, 4, 5, 6, 7], "of the first two only one has a tag"
    assert copy.process().check(copy.table).sound


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_consumer_that_reads_on_is_no_obstacle(both: Paimon, made: Path, copy: Copy, ending: str) -> None:
    cut_after(copy, made, expire, ending)
    JavaTable(both.java, copy.folder / "t").consumer(MAIN, "late", 6)
    copy.process().resume(copy.table)
    assert left(copy) == [6, 7]
    assert copy.process().check(copy.table).sound


def test_a_consumer_that_woke_up_meanwhile_reads_on(both: Paimon, made: Path) -> None:
    """Its time was over, and it was to go. It says what it had said before: only its file is younger."""
    asleep = Copy.of(made, "asleep")
    table = JavaTable(both.java, asleep.folder / "t")
    table.set_option("consumer.expiration-time", "1 h")
    table.consumer(MAIN, "late", 3)
    then = time.time() - 7_200
    date(asleep.folder / "t/consumer/consumer-late", then * 1000)
    copy = Copy.of(asleep.folder, "awake")
    cut_after(copy, asleep.folder, expire, "/snapshot-2")
    JavaTable(both.java, copy.folder / "t").consumer(MAIN, "late", 3)
    copy.process().resume(copy.table)
    assert layout.consumers(copy.folder / "t", MAIN) == {"late": 3}
    assert left(copy) == [2, 3, 4, 5, 6, 7]
    for each in (asleep, copy):
        each.end()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_hold_is_seen_where_the_commit_writes_no_note(made: Path, copy: Copy, ending: str) -> None:
    """The note said already where the records are: nothing in it changes by a second run."""

    def second(copy: Copy, fault: Fault | None) -> None:
        copy.expire(retain_last=6, grace="1m")
        expire(copy, fault)

    cut_after(copy, made, second, ending)
    before = left(copy)
    add_hold(copy.process().places.table_context(copy.table), Hold("all", "somebody", "a test", None))
    with pytest.raises(CollectionForbidden, match="is held as a whole"):
        copy.process().resume(copy.table)
    assert left(copy) == list(range(2, 8)), before


def test_a_tag_above_the_newest_snapshot_comes_back_where_nothing_was_rolled_back(made: Path) -> None:
    """A tag that was made while somebody rolled back is left there. It was taken, and the hold forbids that."""
    high = Copy.of(made, "high")
    newest = json.loads((high.folder / "t/snapshot/snapshot-7").read_text())
    over = {"id": 9, "tagCreateTime": [2020, 1, 1, 1, 1, 1], "tagTimeRetained": 0.001}
    (high.folder / "t/tag/tag-high").write_text(json.dumps({**newest, **over}))
    date(high.folder / "t/tag/tag-high", now_ms() - HOUR_MS)  # the file's own time counts too
    copy = Copy.of(high.folder, "cut")
    cut_after(copy, high.folder, expire, "/tag-high")
    add_hold(copy.process().places.table_context(copy.table), Hold("all", "somebody", "a test", None))
    with pytest.raises(CollectionForbidden):
        copy.process().resume(copy.table)
    assert (copy.folder / "t/tag/tag-high").exists()
    assert left(copy) == list(range(1, 8))
    for each in (high, copy):
        each.end()


# ---------------------------------------------------------------- the writers' own expiry


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ending", [*ENDINGS, "/EARLIEST"])
def test_the_writers_own_expiry_went_further(both: Paimon, made: Path, copy: Copy, ending: str) -> None:
    """All that was taken had come back: snapshots whose files were gone, below a hole, and the hint pointed at them."""
    cut_after(copy, made, expire, ending)
    table = JavaTable(both.java, copy.folder / "t")
    table.write(MAIN, [row(8, "eight")])
    paimons_expiry(both.java, table, Retention(most=1))
    assert left(copy) == [8]
    copy.process().resume(copy.table)
    assert left(copy) == [8]
    assert (copy.folder / "t/snapshot/EARLIEST").read_text() == "8"
    copy.clock.advance(61_000)
    copy.process().resume(copy.table)
    assert copy.process().run(copy.process().runs(copy.table)[0].id).state == "done"


@pytest.mark.parametrize("ending", ENDINGS[:2])
def test_a_snapshot_that_the_writers_expired_since_does_not_come_back(
    both: Paimon, made: Path, copy: Copy, ending: str
) -> None:
    """Their expiry ended just where the commit's range begins. A hold made the commit be given up, and it put back
    snapshots whose files the writers had deleted.
    """
    cut_after(copy, made, expire, ending)
    paimons_expiry(both.java, JavaTable(both.java, copy.folder / "t"), Retention(most=2))
    assert left(copy) == [6, 7]
    missing = copy.missing()
    add_hold(copy.process().places.table_context(copy.table), Hold("all", "somebody", "a test", None))
    copy.process().resume(copy.table)
    assert left(copy) == [6, 7]
    assert copy.missing() == missing
    assert (copy.folder / "t/snapshot/EARLIEST").read_text() == "6"


# ---------------------------------------------------------------- numbers that were given again


@pytest.mark.parametrize("ending", ENDINGS[:2])
def test_a_range_that_begins_with_another_snapshot_of_the_same_number_is_another(
    both: Paimon, made: Path, copy: Copy, ending: str
) -> None:
    """The commit was carried on, since a snapshot 6 was there: the hint at the first one ran ahead of 4 and 5."""
    cut_after(copy, made, expire, ending)
    table = JavaTable(both.java, copy.folder / "t")
    table.rollback(MAIN, 3)
    for number in range(11, 15):
        table.write(MAIN, [row(number, "again")])
    assert left(copy)[-1] >= 7
    copy.process().resume(copy.table)
    numbers = left(copy)
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert seen_by_java(both, copy)[1] == numbers[0]
    assert copy.process().check(copy.table).sound


# ---------------------------------------------------------------- what stays below the range, by a tag of ours


def _old_and_kept(made: Path, number: int) -> Copy:
    """Returns a copy in which a policy keeps snapshot 3, of another day, below a range that begins with the newest."""
    old = Copy.of(made, number)
    shutil.rmtree(old.folder / "t/branch")  # the writers' expiry does not look at branches
    third = old.folder / "t/snapshot/snapshot-3"
    third.write_text(json.dumps({**json.loads(third.read_text()), "timeMillis": 1_700_000_000_000}))
    return old


def _expire_all_but_the_third(copy: Copy, fault: Fault | None) -> str:
    keep = {"last": "1", "daily": "2"}
    return str(copy.expire(fault, grace="1m", retain_last=None, older_than=None, keep=keep).run.id)


def _tags_of_ours(copy: Copy) -> list[str]:
    return sorted(path.name for path in (copy.folder / "t/tag").glob("tag-firnline-*"))


def _goes_on(copy: Copy) -> None:
    """The run comes to its end, and another one of the table too."""
    copy.clock.advance(61_000)
    copy.process().resume(copy.table)
    copy.expire(sole_writer=False)
    assert {each.state for each in copy.process().runs(copy.table)} <= {"done", "cancelled"}
    assert not copy.missing()
    assert copy.process().check(copy.table).sound


def test_no_tag_of_ours_is_put_on_what_the_writers_expired_since(both: Paimon, made: Path) -> None:
    """The commit was cut before its tag. Carried on, it wrote a tag whose files were gone: nobody could read it, and
    every later run of the table stopped there for good.
    """
    old = _old_and_kept(made, 1)
    copy = Copy.of(old.folder, 2)
    cut_after(copy, old.folder, _expire_all_but_the_third, ".begun")
    assert _tags_of_ours(copy) == []
    paimons_expiry(both.java, JavaTable(both.java, copy.folder / "t"), Retention(most=1))
    assert left(copy) == [7]
    copy.process().resume(copy.table)
    assert _tags_of_ours(copy) == []
    _goes_on(copy)
    for each in (old, copy):
        each.end()


def test_a_tag_of_ours_that_the_writers_expiry_overtook_goes_again(both: Paimon, made: Path) -> None:
    """They had read the tags before it was there, and deleted its files just then."""
    copy = _old_and_kept(made, 3)
    table = JavaTable(both.java, copy.folder / "t")
    acting = Before(
        "put_if_absent", "tag-firnline-snapshot-3", lambda: paimons_expiry(both.java, table, Retention(most=1))
    )
    _expire_all_but_the_third(copy, acting)
    assert acting.acted
    assert _tags_of_ours(copy) == []
    _goes_on(copy)
    copy.end()


def test_an_undo_looks_at_the_files_of_what_a_tag_of_ours_held(made: Path) -> None:
    """The snapshot would come back without them. Each try was given up at once, for five minutes, and then the run
    stayed in the middle for good.
    """
    copy = _old_and_kept(made, 4)
    third = json.loads((copy.folder / "t/snapshot/snapshot-3").read_text())
    run = _expire_all_but_the_third(copy, None)
    (copy.folder / "t/manifest" / third["deltaManifestList"]).unlink()
    before = copy.picture()
    with pytest.raises(RefusedForSafety, match=r"snapshot-3 .* are gone"):
        copy.process().undo(run)
    assert copy.picture() == before
    assert copy.process().run(run).state == "committed"
    copy.end()


# ---------------------------------------------------------------- an undo that is given up, and readers


def test_an_undo_that_is_given_up_leaves_what_a_reader_began_with(both: Paimon, copy: Copy) -> None:
    """It was cut, a reader began with what it had put back, and a hold made it be given up: it took the snapshot out
    from under the reader, to put it back a moment later.
    """
    run = str(copy.expire(grace="1m").run.id)
    with pytest.raises(Died):
        copy.process(OnSnapshots(Dying(2, when="after", verb="put_if_absent"))).undo(run)
    copy.wait_for_lease()
    assert left(copy) == [4, 5, 6, 7]
    JavaTable(both.java, copy.folder / "t").consumer(MAIN, "late", 5)
    add_hold(copy.process().places.table_context(copy.table), Hold("all", "somebody", "a test", None))
    counting = CountingFault()
    copy.process(counting).undo(run)
    gone = {key.rpartition("/")[2] for verb, key in counting.trace if verb == "delete" and "/t/snapshot/" in key}
    assert "snapshot-4" in gone, "it was given up"
    assert "snapshot-5" not in gone
    assert left(copy) == [1, 2, 3, 4, 5, 6, 7]
    assert not copy.missing()


def test_an_undo_that_is_given_up_leaves_what_a_rollback_goes_to_meanwhile(both: Paimon, copy: Copy) -> None:
    """It looked once, before it took out anything: a rollback that came then lost its target, and the branch had no
    snapshot at all until the undo was tried again.
    """
    run = str(copy.expire(grace="1m").run.id)
    with pytest.raises(Died):
        copy.process(OnSnapshots(Dying(2, when="after", verb="put_if_absent"))).undo(run)
    copy.wait_for_lease()
    add_hold(copy.process().places.table_context(copy.table), Hold("all", "somebody", "a test", None))
    table, counting = JavaTable(both.java, copy.folder / "t"), CountingFault()
    acting = Before("delete", "/snapshot-3", lambda: table.rollback(MAIN, 5))
    copy.process(BothFaults(acting, counting)).undo(run)
    assert acting.acted
    ours = ("/snapshot-4", "/snapshot-5")
    assert not [key for verb, key in counting.trace if verb == "delete" and key.endswith(ours)]
    assert left(copy) == [1, 2, 3, 4, 5]
    assert not copy.missing()
