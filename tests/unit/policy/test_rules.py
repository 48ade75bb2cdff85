"""Each rule alone, as tables: which snapshots stay and for which reasons."""

from __future__ import annotations

import pytest

from firnline.errors import PolicyError
from firnline.model.snapshots import Snapshot
from firnline.model.times import DAY_MS, HOUR_MS
from firnline.policy.periods import Period
from firnline.policy.rules import KeepLast, KeepPeriods, KeepTags, KeepWithin, Rule

HEAD = ["current", "branch head main"]
DAY = DAY_MS


def reasons_of_rule(kept: dict[str, list[str]]) -> dict[str, list[str]]:
    """Returns the reasons that a rule gave; those of the head are the same everywhere."""
    by_rule = {name: [r for r in reasons if r not in HEAD] for name, reasons in kept.items()}
    return {name: reasons for name, reasons in by_rule.items() if reasons}


def test_last_keeps_the_newest_in_lineage_order(history) -> None:
    history.chain("2026-08-19 01:00", "2026-08-20 01:00", "2026-08-21 01:00", "2026-08-22 01:00")
    assert history.kept(KeepLast(2)) == {
        "2026-08-22 01:00": [*HEAD, "last #1"],
        "2026-08-21 01:00": ["last #2"],
    }


def test_last_all_keeps_the_whole_timeline_but_nothing_beside_it(history) -> None:
    history.chain("2026-08-20 01:00", "2026-08-21 01:00").commit("staged", "2026-08-11 01:00", "2026-08-20 01:00")
    decision = history.decide(KeepLast(None))
    assert set(decision.kept) == {"2026-08-20 01:00", "2026-08-21 01:00"}
    assert decision.expired == ("staged",)


def test_a_fresh_staged_commit_stays_under_any_policy_until_somebody_can_publish_it(history) -> None:
    history.chain("2026-08-20 01:00", "2026-08-21 01:00").commit("staged", "2026-08-22 01:00", "2026-08-20 01:00")
    assert history.kept(KeepLast(1))["staged"] == ["unreferenced, newer than 5d"]


def test_last_goes_by_lineage_even_where_clocks_went_backwards(history) -> None:
    history.chain("2026-08-22 01:00", "2026-08-20 01:00", "2026-08-18 01:00")
    assert reasons_of_rule(history.kept(KeepLast(2))) == {
        "2026-08-18 01:00": ["last #1"],
        "2026-08-20 01:00": ["last #2"],
    }


@pytest.mark.parametrize(
    ("time", "stays"),
    [
        ("2026-07-23 11:59:59.999", False),
        ("2026-07-23 12:00:00.000", True),
        ("2026-07-23 12:00:00.001", True),
    ],
)
def test_within_keeps_its_boundary(history, time: str, stays: bool) -> None:
    history.chain(time, "2026-08-22 01:00")
    assert (time in history.kept(KeepWithin(30 * DAY))) is stays


def test_within_sees_staged_and_unreferenced_snapshots(history) -> None:
    history.chain("2026-08-01 01:00", "2026-08-22 01:00")
    history.commit("staged", "2026-08-16 01:00", "2026-08-01 01:00").commit("root", "2026-08-17 01:00")
    history.commit("old", "2026-08-02 01:00")
    assert reasons_of_rule(history.kept(KeepWithin(7 * DAY))) == {
        "2026-08-22 01:00": ["within 7d"],
        "staged": ["within 7d"],
        "root": ["within 7d"],
    }


CALENDAR = [
    (
        "daily, the newest of each day; days without a snapshot do not count",
        KeepPeriods(Period.DAILY, count=2),
        ["2026-08-10 09:00", "2026-08-18 09:00", "2026-08-18 23:59", "2026-08-22 00:00", "2026-08-22 08:00"],
        {"2026-08-22 08:00": ["daily #1"], "2026-08-18 23:59": ["daily #2"]},
    ),
    (
        "too few days: the oldest stands in for the missing ones",
        KeepPeriods(Period.DAILY, count=7),
        ["2026-08-21 09:00", "2026-08-21 10:00", "2026-08-22 08:00"],
        {
            "2026-08-22 08:00": ["daily #1"],
            "2026-08-21 10:00": ["daily #2"],
            "2026-08-21 09:00": ["daily #3 (oldest)"],
        },
    ),
    (
        "the oldest is not named twice when it is the newest of its day",
        KeepPeriods(Period.DAILY, count=7),
        ["2026-08-21 10:00", "2026-08-22 08:00"],
        {"2026-08-22 08:00": ["daily #1"], "2026-08-21 10:00": ["daily #2"]},
    ),
    (
        "exactly enough days: the oldest goes",
        KeepPeriods(Period.DAILY, count=2),
        ["2026-08-21 09:00", "2026-08-21 10:00", "2026-08-22 08:00"],
        {"2026-08-22 08:00": ["daily #1"], "2026-08-21 10:00": ["daily #2"]},
    ),
    (
        "daily within an interval: its boundary stays, and no oldest is added",
        KeepPeriods(Period.DAILY, window_ms=3 * DAY),
        ["2026-08-19 11:59", "2026-08-19 12:00", "2026-08-20 01:00", "2026-08-20 02:00", "2026-08-22 08:00"],
        {
            "2026-08-22 08:00": ["daily #1"],
            "2026-08-20 02:00": ["daily #2"],
            "2026-08-19 12:00": ["daily #3"],
        },
    ),
    (
        "hourly",
        KeepPeriods(Period.HOURLY, count=2),
        ["2026-08-22 06:10", "2026-08-22 07:10", "2026-08-22 07:59:59.999", "2026-08-22 08:00"],
        {"2026-08-22 08:00": ["hourly #1"], "2026-08-22 07:59:59.999": ["hourly #2"]},
    ),
    (
        "weekly is the ISO week: Monday starts it, and it may span two years",
        KeepPeriods(Period.WEEKLY, count=2),
        ["2025-12-28 23:00", "2025-12-29 00:00", "2026-01-04 23:00", "2026-01-05 00:00"],
        {"2026-01-05 00:00": ["weekly #1"], "2026-01-04 23:00": ["weekly #2"]},
    ),
    (
        "monthly",
        KeepPeriods(Period.MONTHLY, count=2),
        ["2026-01-31 23:59", "2026-02-01 00:00", "2026-02-28 23:59", "2026-03-01 00:00"],
        {"2026-03-01 00:00": ["monthly #1"], "2026-02-28 23:59": ["monthly #2"]},
    ),
    (
        "quarterly",
        KeepPeriods(Period.QUARTERLY, count=2),
        ["2025-12-31 01:00", "2026-01-01 01:00", "2026-03-31 01:00", "2026-04-01 01:00"],
        {"2026-04-01 01:00": ["quarterly #1"], "2026-03-31 01:00": ["quarterly #2"]},
    ),
    (
        "yearly all: every year, and the start of the history",
        KeepPeriods(Period.YEARLY),
        ["2023-05-01 01:00", "2023-06-01 01:00", "2024-01-01 01:00", "2026-04-01 01:00"],
        {
            "2026-04-01 01:00": ["yearly #1"],
            "2024-01-01 01:00": ["yearly #2"],
            "2023-06-01 01:00": ["yearly #3"],
            "2023-05-01 01:00": ["yearly #4 (oldest)"],
        },
    ),
    (
        "before 1970",
        KeepPeriods(Period.MONTHLY, count=2),
        ["1969-11-30 23:00", "1969-12-01 00:00", "1969-12-31 23:59", "1970-01-01 00:00"],
        {"1970-01-01 00:00": ["monthly #1"], "1969-12-31 23:59": ["monthly #2"]},
    ),
    (
        "clocks that went backwards: the day's newest by time stays, not by lineage",
        KeepPeriods(Period.DAILY, count=1),
        ["2026-08-22 11:00", "2026-08-21 10:00", "2026-08-22 09:00"],
        {"2026-08-22 11:00": ["daily #1"]},
    ),
]


@pytest.mark.parametrize(("rule", "times", "expected"), [case[1:] for case in CALENDAR], ids=[c[0] for c in CALENDAR])
def test_calendar(history, rule: Rule, times: list[str], expected: dict[str, list[str]]) -> None:
    assert reasons_of_rule(history.chain(*times).kept(rule)) == expected


def test_equal_times_keep_the_one_nearer_to_the_head(history) -> None:
    history.commit("a", "2026-08-22 01:00").commit("b", "2026-08-22 01:00", "a").branch("main", "b")
    assert reasons_of_rule(history.kept(KeepPeriods(Period.DAILY, count=1))) == {"b": ["daily #1"]}


def test_a_month_and_a_week_of_the_same_number_do_not_collide(history) -> None:
    """Kopia loses 5 January here: week 2020-01 and month 2020-01 share one key."""
    days = [f"2020-01-{day:02d} 12:00" for day in range(1, 21)]
    history.now = "2020-01-20 13:00"
    kept = history.chain(*days).kept(KeepPeriods(Period.WEEKLY, count=4), KeepPeriods(Period.MONTHLY, count=24))
    assert kept["2020-01-05 12:00"] == ["weekly #4"]


def test_absurd_timestamps_have_periods_too(history) -> None:
    history.chain("2026-08-21 01:00", "2026-08-22 01:00")
    for name, ms in (("first", -(2**63)), ("last", 2**63 - 1)):
        history.snapshots[name] = Snapshot(name, None, ms)
        history.branch(name, name)
    kept = history.kept(*(KeepPeriods(period, count=1) for period in Period))
    assert kept["first"] == ["branch head first", *(f"{period} #1 on first" for period in Period)]
    assert kept["last"] == ["branch head last", *(f"{period} #1 on last" for period in Period)]


def test_each_branch_is_its_own_timeline_and_shared_snapshots_stay_for_either(history) -> None:
    history.chain("2026-08-18 01:00", "2026-08-19 01:00", "2026-08-20 01:00", "2026-08-21 01:00")
    history.chain("2026-08-22 01:00", branch="dev", onto="2026-08-18 01:00")
    assert reasons_of_rule(history.kept(KeepLast(2))) == {
        "2026-08-21 01:00": ["last #1"],
        "2026-08-20 01:00": ["last #2"],
        "2026-08-22 01:00": ["branch head dev", "last #1 on dev"],
        "2026-08-18 01:00": ["last #2 on dev"],
    }


def test_a_rule_names_a_shared_snapshot_once_and_main_comes_first(history) -> None:
    history.chain("2026-08-20 01:00", "2026-08-21 01:00").branch("a", "2026-08-21 01:00")
    assert history.kept(KeepLast(2)) == {
        "2026-08-21 01:00": ["current", "branch head main", "branch head a", "last #1"],
        "2026-08-20 01:00": ["last #2"],
    }


def test_tags_by_pattern_stay_beyond_their_age(history) -> None:
    history.chain("2026-08-01 01:00", "2026-08-02 01:00", "2026-08-22 01:00")
    history.tag("audit-q1", "2026-08-01 01:00", max_ref_age_ms=DAY).tag("other", "2026-08-02 01:00", max_ref_age_ms=DAY)
    decision = history.decide(KeepTags(("release-?", "audit-*")))
    assert decision.expired_refs == ("other",)
    assert decision.expired == ("2026-08-02 01:00",)
    assert history.kept(KeepTags(("audit-*",)))["2026-08-01 01:00"] == ["tag audit-*"]


def test_patterns_name_tags_only_and_mind_their_case(history) -> None:
    history.chain("2026-08-01 01:00", "2026-08-22 01:00").branch("audit-b", "2026-08-01 01:00", max_ref_age_ms=DAY)
    history.tag("Audit-c", "2026-08-01 01:00", max_ref_age_ms=DAY)
    assert history.decide(KeepTags(("audit-*",))).expired_refs == ("Audit-c", "audit-b")


def test_a_young_tag_that_a_pattern_names_has_both_reasons(history) -> None:
    history.chain("2026-08-01 01:00", "2026-08-22 01:00").tag("audit-q1", "2026-08-01 01:00")
    assert history.kept(KeepTags(("audit-*",)))["2026-08-01 01:00"] == ["tag audit-q1", "tag audit-*"]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (KeepLast(3), "last 3"),
        (KeepLast(None), "last all"),
        (KeepWithin(30 * DAY), "within 30d"),
        (KeepPeriods(Period.DAILY, count=7), "daily 7"),
        (KeepPeriods(Period.HOURLY, window_ms=36 * HOUR_MS), "hourly within 1d12h"),
        (KeepPeriods(Period.YEARLY), "yearly all"),
        (KeepTags(("a-*", "b")), "tags a-*, b"),
    ],
)
def test_rules_read_as_they_are_written(rule: Rule, text: str) -> None:
    assert str(rule) == text


@pytest.mark.parametrize(
    "make",
    [
        lambda: KeepLast(0),
        lambda: KeepLast(-1),
        lambda: KeepWithin(0),
        lambda: KeepPeriods(Period.DAILY, count=0),
        lambda: KeepPeriods(Period.DAILY, count=1, window_ms=7 * DAY),
        lambda: KeepPeriods(Period.MONTHLY, window_ms=12 * 60_000),
        lambda: KeepTags(()),
        lambda: KeepTags(("a", "")),
    ],
)
def test_rules_that_would_keep_nothing_cannot_be_made(make) -> None:
    with pytest.raises(PolicyError):
        make()
