"""The document of a tier's table: time travel in it finds what live found, or nothing, and it only grows."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.formats.iceberg.archiving import archived
from firnline.formats.iceberg.edit import expired
from firnline.formats.iceberg.state import state_of
from firnline.ports.formats import State
from firnline.tiers.places import TierPlaces
from harness.lanes import by_lane

quick = settings(max_examples=by_lane(100, 100, 10_000), deadline=None)
PLACES = TierPlaces("s3://cold/keep")
LONG, LATE = 60_000, 10_000_000
Log = list[tuple[int, int]]


def document(snapshots: Iterable[int], log: Log, **more: Any) -> dict[str, Any]:
    """Returns a live table of these snapshots, each made at its thousandfold, the last of the log being current."""
    current = log[-1][1]
    return {
        "format-version": 2,
        "table-uuid": "7b3a9b9e-92e5-4b2b-9a63-54e4b4b3c0de",
        "location": "s3://lake/t",
        "last-sequence-number": 1_000,
        "last-updated-ms": LATE,
        "last-column-id": 2,
        "schemas": [schema(0, 1, 2)],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "properties": {},
        "current-snapshot-id": current,
        "refs": {"main": {"snapshot-id": current, "type": "branch"}},
        "snapshots": [snapshot(each) for each in snapshots],
        "snapshot-log": [{"timestamp-ms": at, "snapshot-id": each} for at, each in log],
        **more,
    }


def schema(number: int, *columns: int) -> dict[str, Any]:
    fields = [{"id": each, "name": f"c{each}", "required": False, "type": "long"} for each in columns]
    return {"type": "struct", "schema-id": number, "fields": fields}


def snapshot(number: int) -> dict[str, Any]:
    return {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": number * 1_000,
        "summary": {"operation": "append"},
        "manifest-list": f"s3://lake/t/metadata/{number}.avro",
        "schema-id": 0,
        **({"parent-snapshot-id": number - 1} if number > 1 else {}),
    }


def handed(live: dict[str, Any], snapshots: Iterable[int], into: State | None = None) -> State:
    """Returns the tier's table after these snapshots came."""
    state = state_of(live, "lake.db.t", "s3://lake/t/metadata/00001-x.metadata.json")
    made = archived(state, {str(each) for each in snapshots}, set(), PLACES, into, LATE)
    return state_of(made, "cold.db.t", f"s3://cold/keep/lake/t/metadata/0000{into is not None:d}-x.metadata.json")


def log_of(state: State) -> Log:
    return [(each["timestamp-ms"], each["snapshot-id"]) for each in state.document["snapshot-log"]]


def as_of(log: Log, at: int) -> int | None:
    """Returns what time travel finds, as Iceberg's Java looks for it."""
    found = None
    for made_current, number in log:
        if made_current <= at:
            found = number
    return found


@st.composite
def histories(draw: st.DrawFn) -> Log:
    """Returns a log in which snapshots become current as they are made, later (by a fast-forward), again (by a
    rollback), or never; clocks of writers differ by less than a minute, and two may act in one millisecond.
    """
    count = draw(st.integers(2, 9))
    made = [number for number in range(1, count + 1) if number == count or draw(st.integers(0, 3))]
    log = [(number * 1_000, number) for number in made]
    for _ in range(draw(st.integers(0, 2))):
        log.insert(draw(st.integers(1, len(log) - 1)) if len(log) > 1 else 0, (0, draw(st.sampled_from(made))))
    clock, found = 0, []
    for _, number in log:
        clock = max(0, clock + draw(st.sampled_from([0, 1, 700, 5_000, -300])))
        found.append((clock, number))
    return found


@quick
@given(full=histories(), data=st.data())
def test_time_travel_never_finds_another_snapshot_than_in_live(full: Log, data: st.DataObject) -> None:
    present = set(range(1, max(number for _, number in full) + 1))
    live, cold = document(sorted(present), full), None
    for _ in range(3):
        free = sorted(present - {full[-1][1]})
        gone = set(data.draw(st.lists(st.sampled_from(free), unique=True))) if free else set()
        if gone:
            cold = handed(live, gone, cold)
            live, _ = expired(live, {str(each) for each in gone}, set())
            present -= gone
            _assert_true(cold, full)


def _assert_true(cold: State, full: Log) -> None:
    """Asserts that every time has its own snapshot, or one that the tier does not have; but for times after all that it
    knows, at which it stands still.
    """
    log = log_of(cold)
    there = {int(each) for each in cold.graph.by_id}
    last = max((place for place, entry in enumerate(full) if entry[1] in there), default=-1)
    unknown = min((at for at, _ in full[last + 1 :]), default=LATE)
    for at in {time for entry, _ in full for time in (entry - 1, entry, entry + 1)}:
        if at < unknown:
            assert as_of(log, at) == as_of(full, at)
    assert all(later - sooner >= -LONG for (sooner, _), (later, _) in pairwise(log))
    assert cold.document["last-updated-ms"] >= max((at for at, _ in log), default=0)


def test_what_was_made_on_a_branch_was_not_current_when_it_was_made() -> None:
    """1 is current until main is set to 4, whose ancestors 2 and 3 were written to a branch."""
    cold = handed(document(range(1, 6), [(1_000, 1), (4_500, 4), (5_000, 5)]), range(1, 5))
    assert as_of(log_of(cold), 3_200) == 1


def test_a_time_whose_snapshot_stays_in_live_has_no_earlier_one_in_the_tier() -> None:
    cold = handed(document(range(1, 5), [(each * 1_000, each) for each in range(1, 5)]), {1, 3})
    assert as_of(log_of(cold), 2_500) == 2
    assert "2" not in cold.graph


def test_a_log_of_two_clocks_keeps_its_order() -> None:
    """2 was committed after 1, by a writer whose clock was behind: it is the current one at 1,500."""
    cold = handed(document([1, 2, 3], [(1_500, 1), (1_400, 2), (3_000, 3)]), {1, 2})
    assert as_of(log_of(cold), 1_500) == 2


def test_a_log_that_goes_back_by_more_than_java_reads_is_sorted() -> None:
    cold = handed(document([1, 2], [(500_000, 1), (600_000, 2)]), {1})
    again = handed(document([2, 3, 4], [(2_000, 2), (3_000, 3), (4_000, 4)]), {2}, cold)
    assert log_of(again) == [(2_000, 2), (3_000, 3), (4_000, 4), (500_000, 1)]
    assert again.current == "1"


def test_nothing_that_java_checks_shrinks_with_a_live_table_that_went_back() -> None:
    """A table that was registered again from older metadata has lower numbers than what it handed over."""
    newer = document([1, 2, 3], [(1_000, 1), (2_000, 2), (3_000, 3)], **{"format-version": 3, "next-row-id": 50})
    cold = handed(newer, {1, 2})
    older = document([3, 4], [(3_000, 3), (4_000, 4)])
    older |= {"last-sequence-number": 1, "last-column-id": 1, "last-partition-id": 900}
    again = handed(older, {3}, cold).document
    kept = ("format-version", "last-sequence-number", "next-row-id", "last-column-id", "last-partition-id")
    assert {name: again[name] for name in kept} == {name: cold.document[name] for name in kept}


def test_a_spec_of_the_tier_outlives_its_column_in_live() -> None:
    """Live was divided by column 2 once, was cleaned of that spec, and lost the column: as Iceberg allows it."""
    old = {"spec-id": 0, "fields": [{"name": "c2", "transform": "identity", "source-id": 2, "field-id": 1000}]}
    new = {"spec-id": 1, "fields": []}
    first = document([1, 2], [(1_000, 1), (2_000, 2)], **{"partition-specs": [old, new], "default-spec-id": 1})
    cold = handed(first, {1})
    later = document([2, 3], [(2_000, 2), (3_000, 3)], **{"partition-specs": [new], "default-spec-id": 1})
    later |= {"schemas": [schema(0, 1, 2), schema(1, 1)], "current-schema-id": 1}
    again = handed(later, {2}, cold).document
    assert {each["spec-id"] for each in again["partition-specs"]} == {0, 1}


@pytest.mark.parametrize("names", [("snapshots", "snapshot-id"), ("schemas", "schema-id")])
def test_what_is_there_stays_as_it_is(names: tuple[str, str]) -> None:
    name, key = names
    cold = handed(document(range(1, 5), [(each * 1_000, each) for each in range(1, 5)]), {1, 2})
    again = handed(document(range(3, 7), [(each * 1_000, each) for each in range(3, 7)]), {3, 4}, cold)
    before, after = ({each[key]: each for each in state.document[name]} for state in (cold, again))
    assert before.items() <= after.items()
    assert log_of(again)[: len(log_of(cold))] == log_of(cold)
