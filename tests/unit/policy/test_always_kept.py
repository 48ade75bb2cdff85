"""What stays whatever the policy says: heads, holds, pins, and what a branch asks for itself."""

from __future__ import annotations

import pytest

from firnline.model.holds import Hold, Pin
from firnline.model.times import DAY_MS
from firnline.policy.rules import KeepLast, KeepWithin, Rule

MODES = pytest.mark.parametrize("rules", [(), (KeepLast(1),)], ids=["native", "firnline"])
OLD, NEW = "2026-01-01 00:00", "2026-08-22 00:00"


@MODES
def test_a_hold_in_force_keeps_its_snapshot(history, at, rules: tuple[Rule, ...]) -> None:
    hold = Hold("legal-7", "ann", "case 12", OLD, at("2027-01-01 00:00"))
    kept = history.chain(OLD, NEW).kept(*rules, holds=(hold,))
    assert kept[OLD] == ["hold legal-7: by ann, case 12, until 2027-01-01 00:00 UTC"]


@MODES
def test_a_hold_ends_after_its_last_millisecond(history, at, rules: tuple[Rule, ...]) -> None:
    history.chain(OLD, NEW)
    now = at(history.now)
    assert history.decide(*rules, holds=(Hold("h", "a", "b", OLD, now),)).expired == ()
    assert history.decide(*rules, holds=(Hold("h", "a", "b", OLD, now - 1),)).expired == (OLD,)


@MODES
def test_a_hold_on_the_table_keeps_everything_and_every_ref(history, rules: tuple[Rule, ...]) -> None:
    history.chain(OLD, NEW).tag("v1", OLD, max_ref_age_ms=1).tag("lost", "nowhere")
    decision = history.decide(*rules, holds=(Hold("all", "ann", "audit", None),))
    assert (decision.expired, decision.expired_refs) == ((), ())
    assert str(decision.kept[OLD][0]) == "hold all: by ann, audit, until it is released"


@MODES
def test_a_hold_does_not_keep_the_ref(history, rules: tuple[Rule, ...]) -> None:
    history.chain(OLD, NEW).tag("v1", OLD, max_ref_age_ms=1)
    decision = history.decide(*rules, holds=(Hold("h", "a", "b", OLD),))
    assert (decision.expired, decision.expired_refs) == ((), ("v1",))


@MODES
def test_pins_keep_and_unknown_snapshots_are_no_concern(history, rules: tuple[Rule, ...]) -> None:
    pins = (Pin(OLD, "consumer x"), Pin("nowhere", "consumer y"))
    kept = history.chain(OLD, NEW).kept(*rules, pins=pins, holds=(Hold("h", "a", "b", "nowhere"),))
    assert kept[OLD] == ["pin consumer x"]
    assert set(kept) == {OLD, NEW}


def test_heads_and_young_tags_stay_under_a_policy(history) -> None:
    history.chain("2025-01-01 00:00", "2025-02-01 00:00", OLD).chain("2025-03-01 00:00", branch="dev")
    history.tag("v1", "2025-01-01 00:00")
    assert history.kept(KeepWithin(DAY_MS)) == {
        OLD: ["current", "branch head main"],
        "2025-03-01 00:00": ["branch head dev"],
        "2025-01-01 00:00": ["tag v1"],
    }


def test_an_expired_branch_has_no_timeline(history) -> None:
    history.chain(NEW).chain("2026-02-01 00:00", "2026-02-02 00:00", branch="dev")
    history.branch("dev", "2026-02-02 00:00", max_ref_age_ms=DAY_MS)
    decision = history.decide(KeepLast(10))
    assert decision.expired == ("2026-02-01 00:00", "2026-02-02 00:00")
    assert decision.expired_refs == ("dev",)


def test_what_a_branch_carries_itself_counts_beside_a_policy(history) -> None:
    history.chain("2026-01-01 00:00", "2026-01-02 00:00", "2026-01-03 00:00", "2026-01-04 00:00")
    history.branch("main", "2026-01-04 00:00", min_snapshots_to_keep=3)
    assert history.kept(KeepLast(1)) == {
        "2026-01-04 00:00": ["current", "branch head main", "ref main: 1 of 3", "last #1"],
        "2026-01-03 00:00": ["ref main: 2 of 3"],
        "2026-01-02 00:00": ["ref main: 3 of 3"],
    }


def test_the_tables_own_defaults_do_not_count_beside_a_policy(history) -> None:
    history.chain("2026-08-21 00:00", NEW)
    assert history.decide().expired == ()
    assert history.decide(KeepLast(1)).expired == ("2026-08-21 00:00",)


def test_the_age_that_a_branch_carries_counts_beside_a_policy(history) -> None:
    history.chain("2026-08-01 00:00", "2026-08-20 12:00", NEW)
    history.branch("main", NEW, max_snapshot_age_ms=2 * DAY_MS)
    assert history.kept(KeepLast(1))["2026-08-20 12:00"] == ["ref main: newer than 2d"]
    assert history.decide(KeepLast(1)).expired == ("2026-08-01 00:00",)
