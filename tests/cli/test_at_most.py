"""The first run on a table that nobody expired for years: the plan explains why the cap refuses it, and a bound on what
goes at once, the oldest first, needs no leave.
"""

from __future__ import annotations

import json
import os
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.model.times import parse_instant, tell_due
from firnline.ops.runs.bounded import MOST_TRIES, most_within
from firnline.testing.tables import SmallTable
from tests.cli.saying import Capture, facts, said

Lake = Any
TABLE = "lake.ns.neglected"
NIGHTLY = ("--retain-last", "2", "--older-than", "1d")


def share(plan: Any) -> float:
    gone, kept = plan["victims"], plan["kept"]
    return float(max(gone[each] / (gone[each] + kept[each]) for each in ("files", "bytes")))


def test_a_plan_that_the_cap_refuses_says_why_what_stays_and_what_to_do(neglected: SmallTable, capsys: Capture) -> None:
    shown = said(capsys, "plan", TABLE, *NIGHTLY)
    assert "a run would refuse: it would remove 9" in shown
    assert "usual for a table that nothing expired for long" in shown
    assert "What stays: 2 snapshots since 2026-" in shown
    assert "hint: `--at-most 50%` removes at most half now, the oldest first; repeat it for the rest" in shown
    assert "hint: `--blast-radius 9" in shown
    assert "carries it out" not in shown, "a hint must not contradict the refusal"
    refused = said(capsys, "expire", TABLE, *NIGHTLY, "--yes", code=14)
    assert "`--at-most 50%`" in refused
    assert "`--blast-radius 9" in refused
    flag = refused.partition("`--blast-radius ")[2].partition("`")[0]
    assert facts(capsys, "plan", TABLE, *NIGHTLY, "--blast-radius", flag)["refused"] is None


def test_the_way_out_stays_below_a_cap_of_its_own(neglected: SmallTable, capsys: Capture) -> None:
    shown = said(capsys, "plan", TABLE, *NIGHTLY, "--blast-radius", "20%")
    assert "hint: `--at-most 20%` removes at most 20% now, the oldest first; repeat it for the rest" in shown
    assert "--at-most" not in said(capsys, "plan", TABLE, *NIGHTLY, "--blast-radius", "0.5%")


@pytest.mark.parametrize("bound", ["50%", "30%", "90%", "3%"])
@pytest.mark.sampled(2)
def test_a_bound_takes_the_oldest_and_as_many_as_it_allows(neglected: SmallTable, capsys: Capture, bound: str) -> None:
    every = facts(capsys, "plan", TABLE, *NIGHTLY)
    plan = facts(capsys, "plan", TABLE, *NIGHTLY, "--at-most", bound)
    count = len(plan["expire"])
    assert plan["refused"] is None
    assert plan["expire"] == every["expire"][:count], "the oldest first"
    assert 0 < count < len(every["expire"])
    assert share(plan) <= float(bound[:-1]) / 100
    one_more = neglected.victims([int(each) for each in every["expire"][: count + 1]])
    assert len(one_more) / (plan["victims"]["files"] + plan["kept"]["files"]) > float(bound[:-1]) / 100 - 0.02
    staying = [each for each in plan["keep"] if each["reasons"] == [f"at most {bound} goes at once, older ones first"]]
    assert len(staying) == len(every["expire"]) - count
    assert any("stay for a later run" in note for note in plan["notes"])


@pytest.mark.full
def test_runs_with_a_bound_come_to_the_same_end_without_leave(neglected: SmallTable, capsys: Capture) -> None:
    wanted = facts(capsys, "plan", TABLE, *NIGHTLY)["keep"]
    for _ in range(12):
        done = facts(capsys, "expire", TABLE, *NIGHTLY, "--at-most", "50%", "--grace", "0s", "--yes")
        if done["run"] is None:
            break
        assert done["state"] == "done"
        assert json.loads(said(capsys, "check", TABLE, "--json"))["sound"]
    assert [each["snapshot"] for each in facts(capsys, "plan", TABLE, *NIGHTLY)["keep"]] == [
        each["snapshot"] for each in wanted
    ]
    live = {int(each["snapshot"]) for each in wanted}
    assert all(os.path.exists(path.removeprefix("file://")) for each in live for path in neglected.reachable(each))


def test_a_bound_that_all_of_it_fits_into_changes_nothing(lake: Lake, capsys: Capture) -> None:
    plan = facts(capsys, "plan", "lake.ns.events", "--retain-last", "1")
    assert facts(capsys, "plan", "lake.ns.events", "--retain-last", "1", "--at-most", "90%")["expire"] == plan["expire"]


def test_a_ref_on_a_snapshot_that_stays_for_later_stays_too(lake: Lake, neglected: SmallTable, capsys: Capture) -> None:
    changes = sorted(neglected.changes)
    neglected.tag("early", changes[3], max_ref_age_ms=1)
    neglected.tag("late", changes[35], max_ref_age_ms=1)
    lake.register("neglected", neglected.publish())
    plan = facts(capsys, "plan", TABLE, *NIGHTLY, "--at-most", "50%")
    assert plan["expire_refs"] == ["early"]
    assert [each["refs"] for each in plan["keep"] if each["snapshot"] == str(changes[35])] == [["late"]]


@pytest.mark.parametrize("arguments", [("--all",), (TABLE, "--orphans")], ids=" ".join)
def test_a_bound_is_of_one_table(neglected: SmallTable, capsys: Capture, arguments: tuple[str, ...]) -> None:
    assert "--at-most bounds the run of one table" in said(capsys, "plan", *arguments, "--at-most", "50%", code=2)


def test_a_bound_that_is_no_share_is_refused_by_its_own_name(neglected: SmallTable, capsys: Capture) -> None:
    for share in ("half", "50"):
        assert "--at-most" in said(capsys, "plan", TABLE, "--at-most", share, code=2)
        assert "hint: --at-most takes a share such as 50%\n" in said(capsys, "plan", TABLE, "--at-most", share, code=2)


@given(costs=st.lists(st.integers(0, 50), min_size=1, max_size=300), bound=st.floats(0.01, 1.0))
def test_however_files_are_spread_the_bound_holds_and_few_looks_are_taken(costs: list[int], bound: float) -> None:
    whole, looks = sum(costs) + 10, 0

    def plan_oldest(count: int) -> Any:
        nonlocal looks
        looks += 1
        return planned(count)

    def planned(count: int) -> Any:
        gone = sum(costs[:count])
        tally = SimpleNamespace(files=gone, bytes=gone)
        kept = SimpleNamespace(all=SimpleNamespace(files=whole - gone, bytes=whole - gone))
        victims = SimpleNamespace(all=tally)
        return SimpleNamespace(refused=None, kept=kept, victims=victims, expire=costs[:count])

    found = most_within(planned(len(costs)), bound, plan_oldest)
    assert looks <= MOST_TRIES
    if found is None:
        assert sum(costs) / whole <= bound
    else:
        assert sum(costs[:found]) / whole <= bound
        assert found < len(costs)


def test_a_plan_tells_of_runs_that_wait(lake: Lake, capsys: Capture) -> None:
    done = facts(capsys, "expire", "lake.ns.events", "--keep-last", "4", "--yes")
    saved = facts(capsys, "plan", "lake.ns.events", "--keep-last", "1", "--save")["run"]
    shown = said(capsys, "plan", "lake.ns.events", "--keep-last", "1")
    took = f"{done['run']} took out {len(done['expired'])} snapshots; what it frees is still there and goes from "
    assert f"note: {took}{tell_due(parse_instant(done['grace_ends']))} on" in shown
    assert f"note: {saved} is saved and waits for `firnline commit`" in shown
    facts(capsys, "undo", done["run"])
    assert done["run"] not in said(capsys, "plan", "lake.ns.events", "--keep-last", "1")
