"""Why a snapshot goes, rule by rule."""

from __future__ import annotations

import pytest

from firnline.model.times import DAY_MS
from firnline.policy.native import NativeRetention
from firnline.policy.periods import Period
from firnline.policy.rules import KeepLast, KeepPeriods, KeepTags, KeepWithin, Rule
from firnline.policy.why import rough_duration


@pytest.mark.parametrize(
    ("rule", "gone", "line"),
    [
        (KeepWithin(7 * DAY_MS), "2026-08-03 12:00", "within 7d: 12d too old"),
        (KeepLast(3), "2026-08-03 12:00", "last 3: number 5 on main"),
        (
            KeepPeriods(Period.DAILY, count=3),
            "2026-08-20 09:00",
            "daily 3: a newer snapshot of the same day stays on main (2026-08-20 10:00)",
        ),
        (KeepPeriods(Period.DAILY, count=2), "2026-08-03 12:00", "daily 2: its day is number 4 on main"),
        (KeepPeriods(Period.DAILY, window_ms=7 * DAY_MS), "2026-08-03 12:00", "daily within 7d: 12d too old"),
        (
            KeepPeriods(Period.MONTHLY),
            "2026-08-20 10:00",
            "monthly all: a newer snapshot of the same month stays on main (2026-08-22 00:00)",
        ),
        (KeepTags(("audit-*",)), "2026-08-03 12:00", "tags audit-*: no tag of such a name points at it"),
    ],
)
def test_each_rule_says_why_not(history, rule: Rule, gone: str, line: str) -> None:
    history.chain("2026-08-01 12:00", "2026-08-03 12:00", "2026-08-20 09:00", "2026-08-20 10:00", "2026-08-21 00:00")
    history.chain("2026-08-22 00:00", onto="2026-08-21 00:00").commit("staged", "2026-08-02 00:00")
    assert history.why_gone(gone, rule) == (line,)


def test_a_snapshot_on_no_branch_says_so(history) -> None:
    history.chain("2026-08-21 00:00", "2026-08-22 00:00").commit("staged", "2026-08-02 00:00")
    assert history.why_gone("staged", KeepLast(1)) == (
        "unreferenced: not newer than 5d, 15d too old",
        "last 1: on no branch that stays",
    )


def test_every_rule_and_every_branch_speaks(history) -> None:
    history.chain("2026-08-01 12:00", "2026-08-02 12:00", "2026-08-22 00:00")
    history.chain("2026-08-21 00:00", branch="dev", onto="2026-08-02 12:00")
    history.branch("dev", "2026-08-21 00:00", min_snapshots_to_keep=1).tag(
        "v1", "2026-08-01 12:00", max_ref_age_ms=DAY_MS
    )
    assert history.why_gone("2026-08-01 12:00", KeepWithin(DAY_MS), KeepLast(1)) == (
        "tag v1: expired, 20d past its age",
        "ref dev: number 3, it keeps 1",
        "last 1: number 3 on main",
        "last 1: number 3 on dev",
        "within 1d: 20d too old",
    )


def test_native_retention_says_why_not(history) -> None:
    history.native = NativeRetention(5 * DAY_MS, 1)
    history.chain("2026-08-21 00:00", "2026-08-05 12:00", "2026-08-22 00:00").commit("staged", "2026-08-07 12:00")
    assert history.why_gone("2026-08-05 12:00") == ("ref main: number 2, it keeps 1; not newer than 5d, 12d too old",)
    assert history.why_gone("staged") == ("unreferenced: not newer than 5d, 10d too old",)
    assert history.why_gone("2026-08-21 00:00") == (
        "ref main: number 3, it keeps 1; newer than 5d, but a branch keeps no gaps and 2026-08-05 12:00 above it goes",
    )


@pytest.mark.parametrize(
    ("ms", "text"), [(5, "5 ms"), (1_999, "1s"), (61_000, "1m"), (7_200_000, "2h"), (3 * DAY_MS - 1, "2d")]
)
def test_rough_durations_round_down(ms: int, text: str) -> None:
    assert rough_duration(ms) == text
