"""Whatever checkpoints look like and wherever they lie: what a reader needs stays, and what nobody can tell stops."""

from __future__ import annotations

from html import escape
from typing import Any

import pytest

from firnline.app.places import now_ms
from firnline.errors import RefusedForSafety
from firnline.model.times import DAY_MS
from firnline.plans.plan import Plan
from firnline.testing.dated import Clock, dated
from harness.disks import as_a_user
from tests.neighbours.lakes import RealLake
from tests.readers.written import checkpoint, grown, snapshots

EVERY = "readers: [{0}/checkpoints/*]"
LAST: dict[str, Any] = {"retain_last": 1, "grace": "0s", "blast_radius": 1.0}
OF_TABLE = "catalogs: {{lake: {{namespaces: {{db: {{tables: {{a: {{readers: [{0}/checkpoints/job]}}}}}}}}}}}}"


def planned(lake: RealLake, table: str = "a", **options: Any) -> Plan:
    return lake.firnline().plan(f"lake.db.{table}", older_than=now_ms(), **{**LAST, **options}).plan


def kept(plan: Plan) -> list[int]:
    return sorted(int(each.id) for each in plan.keep)


def expire(lake: RealLake, table: str = "a", **options: Any) -> Any:
    return lake.firnline().expire(f"lake.db.{table}", older_than=now_ms(), **{**LAST, **options})


@pytest.fixture
def four(lake: RealLake) -> list[int]:
    """A table of four snapshots, and a policy that looks for all checkpoints."""
    lake.policy = EVERY.format(lake.folder)
    return list(grown(lake))


def test_a_reader_keeps_from_where_it_stands_up_to_the_head(lake: RealLake, four: list[int]) -> None:
    checkpoint(lake).begin(four[0]).batch(0, four[0]).batch(1, four[2])
    plan = planned(lake)
    assert kept(plan) == sorted(four[2:])
    (reasons,) = [each.reasons for each in plan.keep if int(each.id) == four[2]]
    assert reasons[0].startswith(f"reader {lake.folder}/checkpoints/job, ")
    assert reasons[0].endswith(" behind")
    why = lake.firnline().why("lake.db.a", str(four[2]), older_than=now_ms(), retain_last=1)
    assert f"reader {lake.folder}/checkpoints/job" in why.needed_by[0].reasons[0]


def test_of_two_readers_the_slower_one_decides(lake: RealLake, four: list[int]) -> None:
    checkpoint(lake, "fast").begin(four[0]).batch(0, four[3])
    checkpoint(lake, "slow").begin(four[0]).batch(0, four[1])
    assert kept(planned(lake)) == sorted(four[1:])


def test_a_checkpoint_behind_a_link_that_may_not_be_followed_stops_it(lake: RealLake, four: list[int]) -> None:
    """A pattern that finds one checkpoint must not pass over another."""
    checkpoint(lake, "fast").begin(four[0]).batch(0, four[3])
    checkpoint(lake, "slow").begin(four[0]).batch(0, four[1])
    locked = lake.folder / "locked"
    locked.mkdir()
    (lake.folder / "checkpoints" / "slow").rename(locked / "slow")
    (lake.folder / "checkpoints" / "slow").symlink_to(locked / "slow")
    assert kept(planned(lake)) == sorted(four[1:])
    locked.chmod(0)
    with as_a_user(), pytest.raises(RefusedForSafety, match="cannot be seen: no permission"):
        planned(lake)


def test_a_reader_of_another_table_keeps_nothing_here(lake: RealLake, four: list[int]) -> None:
    others = grown(lake, "b")
    checkpoint(lake).begin(others[0]).batch(0, others[0])
    assert kept(planned(lake)) == [four[3]]
    assert kept(planned(lake, "b")) == sorted(others)


def test_a_table_that_was_made_again_is_another_one(lake: RealLake, four: list[int]) -> None:
    checkpoint(lake).begin(four[0]).batch(0, four[0])
    lake.catalog.drop_table("db.a")
    again = grown(lake, many=2)
    lake.policy = OF_TABLE.format(lake.folder)
    plan = planned(lake)
    assert kept(plan) == [again[1]]
    assert any("stands at no snapshot that the table has" in note for note in plan.notes)


def test_a_reader_that_is_ahead_of_the_plan_keeps_nothing_that_it_has_read(lake: RealLake, four: list[int]) -> None:
    checkpoint(lake).begin(four[0]).batch(0, 4_611_686_018_427_387_904)
    assert kept(planned(lake)) == [four[3]]


def test_a_reader_beside_main_keeps_what_follows_there(lake: RealLake, four: list[int]) -> None:
    lake.table("a").manage_snapshots().rollback_to_snapshot(four[1]).commit()
    lake.append("a", 9)
    checkpoint(lake).begin(four[0]).batch(0, four[2])
    assert kept(planned(lake)) == sorted([*four[2:], snapshots(lake)[-1]])


def test_sources_of_other_systems_are_passed_over(lake: RealLake, four: list[int]) -> None:
    checkpoint(lake).begin(four[0], 1).batch(0, '{"topic":{"0":23}}', four[2], "-", "23")
    assert kept(planned(lake)) == sorted(four[2:])


def test_a_query_that_has_not_ended_its_first_batch_stands_at_its_start(lake: RealLake, four: list[int]) -> None:
    checkpoint(lake, "planned").begin(four[1]).batch(0, four[3], committed=False)
    checkpoint(lake, "begun").begin(four[2])
    assert kept(planned(lake)) == sorted(four[1:])


def test_an_empty_folder_keeps_nothing_and_says_so(lake: RealLake, four: list[int]) -> None:
    checkpoint(lake)
    lake.policy = f"readers: [{lake.folder}/checkpoints/job]"
    plan = planned(lake)
    assert kept(plan) == [four[3]]
    assert any("it keeps nothing" in note for note in plan.notes)
    assert plan.to_json()["notes"] == list(plan.notes)


def test_a_reader_that_stands_still_for_too_long_stops_counting_and_is_told_of(lake: RealLake, four: list[int]) -> None:
    checkpoint(lake).begin(four[0]).batch(0, four[1])
    later = Clock(20 * DAY_MS)
    for limit, counts in (("21d", True), ("forever", True), ("14d", False)):
        lake.policy = f"{EVERY.format(lake.folder)}\nreaders-max-age: {limit}"
        view = dated(lake.firnline(), later).plan("lake.db.a", older_than=later(), retain_last=1)
        plan = view.plan
        assert all(note in str(view) for note in plan.notes)
        assert all(escape(note) in view._repr_html_() for note in plan.notes)
        assert kept(plan) == sorted(four[1:] if counts else four[3:])
        told = f"reader {lake.folder}/checkpoints/job stands still for 20d, longer than its limit of 14d"
        assert any(note.startswith(told) for note in plan.notes) != counts
        assert any("take it out of `readers`" in note for note in plan.notes) == (limit == "forever")


def test_a_reader_that_went_back_since_the_plan_is_heard_at_the_commit(lake: RealLake, four: list[int]) -> None:
    place = checkpoint(lake).begin(four[0]).batch(0, four[3])
    saved = lake.firnline().plan("lake.db.a", older_than=now_ms(), save=True, **LAST)
    assert len(saved.plan.expire) == 3
    place.batch(0, four[1])
    lake.firnline().commit(str(saved.plan.run))
    assert snapshots(lake) == four[1:]


def test_a_reader_that_came_after_the_commit_stops_the_purge(lake: RealLake, four: list[int]) -> None:
    place = checkpoint(lake).begin(four[0]).batch(0, four[3])
    run = str(expire(lake, grace="1d").id)
    place.batch(0, four[1])
    with pytest.raises(RefusedForSafety, match=r"the reader .* stands at") as refused:
        dated(lake.firnline(), Clock(2 * DAY_MS)).purge(run)
    assert "firnline undo" in str(refused.value.hint)
    lake.firnline().undo(run)
    assert snapshots(lake) == four


def test_a_reader_that_went_back_below_a_hole_stops_the_purge(lake: RealLake, four: list[int]) -> None:
    """What it stands at is there; what it reads next is what the run took out."""
    place = checkpoint(lake).begin(four[0]).batch(0, four[3])
    lake.firnline().tag("lake.db.a", "first", str(four[0]))
    run = str(expire(lake, grace="1d").id)
    assert snapshots(lake) == [four[0], four[3]]
    place.batch(0, four[0])
    with pytest.raises(RefusedForSafety, match=rf"the reader .* stands at {four[0]}.* has yet to read") as refused:
        dated(lake.firnline(), Clock(2 * DAY_MS)).purge(run)
    assert "firnline undo" in str(refused.value.hint)
    lake.firnline().undo(run)
    assert sorted(snapshots(lake)) == sorted(four)


def test_a_reader_beside_what_a_run_took_out_stops_nothing(lake: RealLake, four: list[int]) -> None:
    """What went after the snapshot at which it stands is of a line that the table left."""
    lake.firnline().tag("lake.db.a", "first", str(four[0]))
    lake.table("a").manage_snapshots().set_current_snapshot(four[0]).commit()
    lake.append("a", 9)
    last = snapshots(lake)[-1]
    checkpoint(lake).begin(four[0]).batch(0, last)
    run = str(expire(lake, grace="1d").id)
    assert snapshots(lake) == [four[0], last]
    checkpoint(lake).batch(0, four[0])
    dated(lake.firnline(), Clock(2 * DAY_MS)).purge(run)
