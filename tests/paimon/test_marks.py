"""Tags, holds and options that firnline writes: Paimon's own readers and writers go by them."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from firnline.app.places import now_ms
from firnline.errors import CollectionForbidden, RefusedForSafety
from firnline.model.holds import Hold
from firnline.model.times import DAY_MS, MINUTE_MS
from firnline.ops.marks.adopt import adopt
from firnline.ops.marks.holds import add_hold, release_hold
from firnline.ops.marks.tags import add_tag, remove_tag
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import TAG, PaimonRoot
from harness.paimon.rows import java_rows
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .small import Copy, in_two_hours, row


def garbage(copy: Copy) -> set[str]:
    """Returns what nothing needs: Paimon's overwrite leaves a changelog behind that it never names."""
    return {path for path in copy.reader().orphans() if "/_firnline/" not in path}


def test_a_tag_is_one_that_java_reads(both: Paimon, copy: Copy) -> None:
    add_tag(copy.process().places.table_context(copy.table), "mine", "3", None)
    add_tag(copy.process().places.table_context(copy.table), "brief", "3", 3_600_000)
    rows = java_rows(JavaTable(both.java, copy.folder / "t"))
    assert (
        rows[PaimonRoot(MAIN, TAG, "mine")]
        == rows[PaimonRoot(MAIN, TAG, "brief")]
        == rows[PaimonRoot(MAIN, "snapshot", "3")]
    )
    in_two_days = now_ms() + 2 * DAY_MS  # an hour, and what lies between the zones
    assert "brief" in copy.process().plan(copy.table, now=in_two_days).to_json()["expire_refs"]
    remove_tag(copy.process().places.table_context(copy.table), "mine")
    assert not (copy.folder / "t/tag/tag-mine").exists()


def test_times_that_firnline_writes_are_the_stores_on_a_machine_that_is_ahead(copy: Copy) -> None:
    schemas = sorted((copy.folder / "t/schema").iterdir())
    copy.clock.skew_ms = 4 * MINUTE_MS
    add_tag(copy.process().places.table_context(copy.table), "brief", "3", 3_600_000)
    adopt(copy.process(policy="keep:\n  last: 3\n").places.table_context(copy.table))
    year, month, day, *clock = json.loads((copy.folder / "t/tag/tag-brief").read_text())["tagCreateTime"]
    assert datetime(year, month, day, *clock[:3]).timestamp() * 1000 <= now_ms()
    (written,) = set((copy.folder / "t/schema").iterdir()) - set(schemas)
    assert json.loads(written.read_text())["timeMillis"] <= now_ms()
    assert json.loads(written.read_text())["timeMillis"] >= json.loads(schemas[-1].read_text())["timeMillis"]


@pytest.mark.parametrize("minutes", [-10, 10])
def test_a_clock_that_is_far_off_writes_nothing(copy: Copy, minutes: int) -> None:
    before = copy.picture()
    copy.clock.skew_ms = minutes * MINUTE_MS
    with pytest.raises(RefusedForSafety, match="clock and the store's differ by"):
        add_tag(copy.process().places.table_context(copy.table), "brief", "3", 3_600_000)
    with pytest.raises(RefusedForSafety, match="clock and the store's differ by"):
        add_hold(copy.process().places.table_context(copy.table), Hold("case", "somebody", "a test", None))
    assert copy.picture() == before


def test_the_last_tag_of_a_snapshot_goes_and_the_next_run_removes_its_files(both: Paimon, copy: Copy) -> None:
    before = garbage(copy)
    copy.expire()
    assert not (copy.folder / "t/snapshot/snapshot-4").exists()
    remove_tag(copy.process().places.table_context(copy.table), "short")
    assert not (copy.folder / "t/tag/tag-short").exists()
    assert not copy.missing()
    assert copy.process().plan(copy.table).to_json()["expire"] == ["4"]
    copy.expire()
    assert garbage(copy) == before
    assert not copy.missing()


def test_a_tag_whose_time_is_over_goes_with_the_files_that_only_it_held(copy: Copy) -> None:
    garbage_before = garbage(copy)
    copy.expire()
    assert (copy.folder / "t/tag/tag-short").exists()
    before = copy.picture()
    copy.expire(now=in_two_hours())
    gone = before.keys() - copy.picture().keys()
    assert "/tag/tag-short" in gone
    assert any("/manifest/" in path for path in gone)
    assert not copy.missing()
    assert garbage(copy) == garbage_before


def test_a_hold_keeps_a_snapshot_and_then_lets_it_go(copy: Copy) -> None:
    work, before = copy.process().places.table_context(copy.table), garbage(copy)
    add_hold(work, Hold("audit", "somebody", "a test", "1"))
    ended = copy.expire()
    assert set(ended.outcomes) == {"deleted"}
    assert (copy.folder / "t/tag/tag-firnline-hold-audit").exists()
    plan = copy.process().plan(copy.table).to_json()
    assert any("hold audit" in reason for each in plan["keep"] if each["snapshot"] == "1" for reason in each["reasons"])
    assert not copy.missing()
    release_hold(work, "audit")
    assert copy.process().plan(copy.table).to_json()["expire"] == ["1"]
    copy.expire()
    assert garbage(copy) == before


def test_a_hold_on_the_table_stops_everything(copy: Copy) -> None:
    work = copy.process().places.table_context(copy.table)
    add_hold(work, Hold("all", "somebody", "a test", None))
    before = copy.picture()
    with pytest.raises(CollectionForbidden):
        copy.expire()
    assert copy.picture() == before
    release_hold(work, "all")
    copy.expire()
    assert not (copy.folder / "t/snapshot/snapshot-1").exists()


def test_adopt_turns_the_writers_own_expiry_off_on_every_branch(both: Paimon, copy: Copy) -> None:
    written = adopt(copy.process(policy="keep: {last: 2}").places.table_context(copy.table))
    assert {each.what for each in written} == {"snapshot.num-retained.min", "snapshot.num-retained.max"}
    assert adopt(copy.process(policy="keep: {last: 2}").places.table_context(copy.table)) == ()
    table = JavaTable(both.java, copy.folder / "t")
    for branch, folder in ((MAIN, "schema"), ("side", "branch/branch-side/schema")):
        options = table.open(branch).coreOptions()
        assert options.snapshotNumRetainMin() == options.snapshotNumRetainMax() == 2**31 - 1
        after = json.loads((copy.folder / "t" / folder / "schema-1").read_text())
        before = json.loads((copy.folder / "t" / folder / "schema-0").read_text())
        assert {**after, "id": 0, "options": 0, "timeMillis": 0} == {**before, "id": 0, "options": 0, "timeMillis": 0}
    table.write(MAIN, [row(8, "eight")])
    assert not copy.missing()


def _notes(copy: Copy) -> list[str]:
    """Returns what a plan says of the writers' own expiry."""
    notes: list[str] = copy.process().plan(copy.table).to_json()["notes"]
    return [note for note in notes if "expire on their own" in note]


def test_adopt_reaches_a_branch_that_was_made_since(both: Paimon, copy: Copy) -> None:
    """Paimon gives it the schema of its tag's time: its writers would expire, and lose files of the others."""
    work = copy.process(policy="keep: {last: 2}").places.table_context(copy.table)
    adopt(work)
    table = JavaTable(both.java, copy.folder / "t")
    assert _notes(copy) == []
    table.create_branch("late", "two")
    assert table.open("late").coreOptions().snapshotNumRetainMin() == 10
    assert [note for note in _notes(copy) if f"firnline adopt {copy.table}" in note]
    written = adopt(work)
    assert _notes(copy) == []
    assert {each.before for each in written} == {"(so on main alone)"}
    assert table.open("late").coreOptions().snapshotNumRetainMin() == 2**31 - 1
    assert not (copy.folder / "t/schema/schema-2").exists(), "nothing changed for the others"
    assert adopt(work) == ()
