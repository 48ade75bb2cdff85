"""Iceberg's own retention, rule by rule, with its boundaries and its oddities."""

from __future__ import annotations

import pytest

from firnline.errors import UnreadableMetadata, UsageError
from firnline.model.snapshots import Ref, RefKind
from firnline.model.times import DAY_MS
from firnline.policy.inherit import with_native_flags
from firnline.policy.native import LONGEST_AGE_MS, NativeRetention
from firnline.policy.policy import Level, Policy, Setting, Source
from firnline.policy.rules import KeepLast

HEAD = ["current", "branch head main"]


def test_the_defaults_keep_one_snapshot_and_five_days(history) -> None:
    history.chain("2026-08-10 12:00", "2026-08-17 11:59:59.999", "2026-08-17 12:00", "2026-08-22 11:00")
    assert history.kept() == {
        "2026-08-22 11:00": [*HEAD, "ref main: 1 of 1", "ref main: newer than 5d"],
        "2026-08-17 12:00": ["ref main: newer than 5d"],
    }
    assert history.decide().expired == ("2026-08-10 12:00", "2026-08-17 11:59:59.999")


def test_min_snapshots_keeps_old_ones(history) -> None:
    history.native = NativeRetention(5 * DAY_MS, 2)
    history.chain("2026-01-01 00:00", "2026-01-02 00:00", "2026-01-03 00:00")
    assert history.kept() == {
        "2026-01-03 00:00": [*HEAD, "ref main: 1 of 2"],
        "2026-01-02 00:00": ["ref main: 2 of 2"],
    }


def test_what_a_ref_carries_beats_the_defaults_even_on_main(history) -> None:
    history.chain("2026-01-01 00:00", "2026-08-19 12:00", "2026-08-20 12:00", "2026-08-22 11:00")
    history.branch("main", "2026-08-22 11:00", max_snapshot_age_ms=2 * DAY_MS, min_snapshots_to_keep=1)
    assert set(history.kept()) == {"2026-08-22 11:00", "2026-08-20 12:00"}
    history.branch("main", "2026-08-22 11:00", min_snapshots_to_keep=4)
    assert history.kept()["2026-01-01 00:00"] == ["ref main: 4 of 4"]


def test_the_walk_stops_at_the_first_snapshot_that_goes(history) -> None:
    """A newer ancestor below an older one goes too, and is not 'unreferenced' either."""
    history.chain("2026-08-21 00:00", "2026-08-01 00:00", "2026-08-22 00:00")
    assert set(history.kept()) == {"2026-08-22 00:00"}


def test_unreferenced_snapshots_stay_by_the_default_age_and_no_count(history) -> None:
    history.chain("2026-08-22 00:00").commit("staged", "2026-08-17 12:00").commit("old", "2026-08-17 11:59")
    assert history.kept()["staged"] == ["unreferenced, newer than 5d"]
    assert history.decide().expired == ("old",)


def test_below_a_missing_parent_snapshots_are_unreferenced(history) -> None:
    history.commit("below", "2026-08-21 00:00").commit("head", "2026-08-22 00:00", "missing").branch("main", "head")
    assert history.kept()["below"] == ["unreferenced, newer than 5d"]


def test_a_tag_protects_only_its_own_snapshot(history) -> None:
    history.commit("parent", "2026-01-01 00:00").commit("tagged", "2026-01-02 00:00", "parent")
    history.chain("2026-08-22 00:00").tag("v1", "tagged")
    assert history.kept()["tagged"] == ["tag v1"]
    assert history.decide().expired == ("parent",)


def test_a_tagged_snapshot_is_not_unreferenced(history) -> None:
    history.chain("2026-08-22 00:00").commit("beside", "2026-08-21 00:00").tag("v1", "beside")
    assert history.kept()["beside"] == ["tag v1"]


def test_branches_that_share_snapshots_do_not_hide_a_third(history) -> None:
    """What the third branch's walk drops must not come back as unreferenced."""
    history.chain("2026-08-20 00:00", "2026-08-22 00:00").branch("same", "2026-08-22 00:00")
    history.chain("2026-08-21 00:00", "2026-08-01 00:00", "2026-08-21 09:00", branch="third")
    assert history.decide().expired == ("2026-08-01 00:00", "2026-08-21 00:00")


@pytest.mark.parametrize(("age_ms", "stays"), [(36 * 3_600_000, True), (36 * 3_600_000 - 1, False)])
def test_a_ref_stays_up_to_and_at_its_age(history, age_ms: int, stays: bool) -> None:
    history.chain("2026-08-21 00:00", "2026-08-22 00:00").tag("v1", "2026-08-21 00:00", max_ref_age_ms=age_ms)
    assert history.decide().expired_refs == (() if stays else ("v1",))


def test_an_expired_branch_leaves_unreferenced_snapshots(history) -> None:
    history.chain("2026-08-22 00:00").chain("2026-08-02 00:00", "2026-08-20 00:00", branch="dev")
    history.branch("dev", "2026-08-20 00:00", max_ref_age_ms=DAY_MS)
    assert history.kept()["2026-08-20 00:00"] == ["unreferenced, newer than 5d"]
    assert history.decide().expired == ("2026-08-02 00:00",)


def test_the_default_ref_age_counts_for_all_but_main(history) -> None:
    history.native = NativeRetention(5 * DAY_MS, 1, max_ref_age_ms=DAY_MS)
    history.chain("2026-08-01 00:00").tag("v1", "2026-08-01 00:00").branch("dev", "2026-08-01 00:00")
    decision = history.decide()
    assert decision.expired_refs == ("dev", "v1")
    assert set(decision.kept) == {"2026-08-01 00:00"}


def test_a_ref_to_a_missing_snapshot_goes(history) -> None:
    assert history.chain("2026-08-22 00:00").tag("v1", "nowhere").decide().expired_refs == ("v1",)


def test_main_or_current_at_a_missing_snapshot_is_refused(history) -> None:
    history.chain("2026-08-22 00:00").refs["main"] = Ref("main", RefKind.BRANCH, "nowhere")
    with pytest.raises(UnreadableMetadata, match="branch main points at snapshot nowhere"):
        history.decide()
    history.refs.clear()
    history.current = "elsewhere"
    with pytest.raises(UnreadableMetadata, match="elsewhere"):
        history.decide()


def test_a_table_without_refs_has_a_main_at_its_current_snapshot(history) -> None:
    history.chain("2026-08-18 00:00", "2026-08-19 00:00").refs.clear()
    history.commit("left by a rollback", "2026-08-01 00:00", "2026-08-18 00:00")
    assert history.kept()["2026-08-18 00:00"] == ["ref main: newer than 5d"]
    assert history.decide().expired == ("left by a rollback",)


def test_a_current_snapshot_that_is_not_mains_head_stays(history) -> None:
    history.chain("2026-01-01 00:00", "2026-08-22 00:00").current = "2026-01-01 00:00"
    assert history.kept()["2026-01-01 00:00"] == ["current"]


def test_an_empty_table_decides_nothing(history) -> None:
    decision = history.decide()
    assert (dict(decision.kept), decision.expired, decision.expired_refs) == ({}, (), ())


def test_a_snapshot_without_any_ref_and_no_current(history) -> None:
    assert history.commit("staged", "2026-08-01 00:00").decide().expired == ("staged",)


@pytest.mark.parametrize("age", [LONGEST_AGE_MS, 2**70])
def test_huge_ages_keep(history, age: int) -> None:
    history.native = NativeRetention(age, 1, max_ref_age_ms=age)
    history.chain("1969-01-01 00:00", "2026-08-22 00:00").tag("v1", "1969-01-01 00:00")
    assert history.kept()["1969-01-01 00:00"] == ["tag v1", "ref main: of any age"]


def test_a_loop_in_the_parents_ends(history) -> None:
    history.commit("a", "2026-08-21 00:00", "b").commit("b", "2026-08-22 00:00", "a").branch("main", "b")
    assert set(history.kept()) == {"a", "b"}


def test_equal_times_expire_in_one_order(history) -> None:
    history.commit("b", "2026-01-01 00:00").commit("a", "2026-01-01 00:00").chain("2026-08-22 00:00")
    assert history.decide().expired == ("a", "b")


def test_older_than_and_retain_last_replace_the_defaults_only(history, at) -> None:
    history.chain("2026-08-18 00:00", "2026-08-19 00:00", "2026-08-20 00:00", "2026-08-21 00:00")
    history.native = with_native_flags(history.native, Policy(), at("2026-08-20 00:00"), 1)
    assert history.kept()["2026-08-20 00:00"] == ["ref main: newer than 2026-08-20 00:00 UTC"]
    assert history.decide().expired == ("2026-08-18 00:00", "2026-08-19 00:00")
    history.branch("main", "2026-08-21 00:00", max_snapshot_age_ms=3 * DAY_MS, min_snapshots_to_keep=3)
    assert history.decide().expired == ("2026-08-18 00:00",)


def test_native_flags_that_make_no_sense_are_refused() -> None:
    native = NativeRetention(DAY_MS, 1)
    assert with_native_flags(native, Policy()) is native
    with pytest.raises(UsageError, match="must be 1 or more, not 0"):
        with_native_flags(native, Policy(), retain_last=0)
    policy = Policy((Setting(KeepLast(3), Source(Level.ASKED)),))
    with pytest.raises(UsageError, match=r"do not go with a policy: keep last 3 \(asked\)") as caught:
        with_native_flags(native, policy, older_than_ms=0)
    assert "--keep-within" in caught.value.flags
    assert with_native_flags(native, policy) is native


def test_native_retention_says_what_it_is() -> None:
    assert NativeRetention(5 * DAY_MS, 1).describe() == "1 per branch and what is newer than 5d; refs for ever"
    assert NativeRetention(5 * DAY_MS, 2, 7 * DAY_MS).describe().endswith("refs 7d")
