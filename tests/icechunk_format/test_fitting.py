"""What of a decision one threshold brings about: never less than is to stay, and exactly what the commit then does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import RefusedForSafety
from firnline.formats.icechunk.expiring import loose_ends
from firnline.formats.icechunk.expiring.ancestry import RefHistory, survivors_since
from firnline.formats.icechunk.expiring.fitting import fitted, gone_after, manner_of, parts_of, threshold_to_expire
from firnline.formats.icechunk.expiring.loose_ends import loose, next_layer, older_than
from firnline.formats.icechunk.expiring.rewriting import Manner, rewritten
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.model.snapshots import MAIN, Ref, RefKind
from firnline.policy.decide import Decision
from firnline.policy.reasons import Reason

from .histories import MINUTE, SAMPLE_THRESHOLD, history_of, lines_of, random_histories, sample

NOBODY = 1 << 62
"""No session is open."""
RULE = (Reason("keep-within", "7d"),)
NUMBERS = st.sets(st.integers(0, 14).map(str))
SPECS = st.sampled_from([1, 2])


def decided(history: RefHistory, kept: set[str]) -> Decision:
    """Returns a decision of rules that keep these, beside what refs and first snapshots hold."""
    held = {ref.snapshot for ref in history.refs} | {each.id for each in history.snapshots.values() if not each.parent}
    stays = (kept & history.snapshots.keys()) | held
    return Decision(dict.fromkeys(stays, RULE), tuple(sorted(history.snapshots.keys() - stays)), (), 0)


@given(random_histories(), NUMBERS, SPECS)
def test_nothing_that_is_to_stay_goes_and_the_commit_does_just_that(
    history: RefHistory, kept: set[str], spec: int
) -> None:
    decision = decided(history, kept)
    found = fitted(decision, history, (), spec, NOBODY)
    listed = history.reachable() if spec == 1 else history.snapshots.keys()
    assert not set(found.expired) & decision.kept.keys()
    assert set(found.expired) <= set(decision.expired)
    assert found.kept.keys() | set(found.expired) == history.snapshots.keys()
    cut_us, apart = parts_of(history, set(found.expired), spec)
    after = rewritten(history, survivors_since(history, cut_us or 0), manner_of(spec))
    assert gone_after(after, spec) == set(found.expired) - apart
    left = shed(after.after, apart)
    assert left.snapshots.keys() & listed == listed - set(found.expired) if spec > 1 else not apart
    assert lines_of(left) == lines_of(after.after)


def shed(history: RefHistory, due: frozenset[str]) -> RefHistory:
    """Returns what the library makes of a history, one layer of loose ends after the other."""
    while layer := next_layer(history, due):
        assert layer.guarded | layer.ends == older_than(history, layer.threshold_us)
        guards = [Ref(f"guard-{each}", RefKind.BRANCH, each) for each in layer.guarded]
        guarded = RefHistory(history.snapshots, (*history.refs, *guards))
        found = rewritten(guarded, survivors_since(guarded, layer.threshold_us), Manner.VERSION_2)
        assert (found.parents, guarded.snapshots.keys() - found.after.snapshots.keys()) == ({}, layer.ends)
        history = found.after.without(refs=guards)
    return history


@given(random_histories(), NUMBERS, st.integers(0, 15))
def test_of_what_no_ref_leads_to_only_what_is_kept_or_young_stays_and_what_lies_below(
    history: RefHistory, kept: set[str], open_minute: int
) -> None:
    found = fitted(decided(history, kept), history, (), 2, open_minute * MINUTE)
    young = {each.id for each in history.snapshots.values() if each.flushed_us >= open_minute * MINUTE}
    stays = [each for each in loose(history) if each in kept | young]
    below = {each for tip in stays for each in history.line(tip)}
    assert loose(history) - set(found.expired) <= below
    assert set(stays) <= found.kept.keys()


@pytest.mark.parametrize(("most", "gone"), [(8, ("4", "5", "6")), (6, ("4", "5", "6")), (5, ()), (0, ())])
def test_what_would_take_too_many_guards_is_left(
    monkeypatch: pytest.MonkeyPatch, most: int, gone: tuple[str, ...]
) -> None:
    """4 to 6 were reset away, and 1 to 5 would have guards until 6 is gone."""
    monkeypatch.setattr(loose_ends, "MOST_GUARDS", most)
    history = history_of({1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5, 7: 3, 8: 7}, [Ref(MAIN, RefKind.BRANCH, "8")])
    found = fitted(decided(history, {"1", "2", "3", "7", "8"}), history, (), 2, NOBODY)
    assert found.expired == gone
    left = {str(*found.kept[each]) for each in {"4", "5", "6"} - set(gone)}
    assert left <= {
        "unreferenced, until no session can need it; then by a later run, or Icechunk's own collection",
    }


def test_a_later_threshold_would_take_no_snapshot_that_a_rule_keeps_and_no_ref_leads_to() -> None:
    """2 was reset away, and is within a window that a rule keeps; on main only the newest is."""
    history = history_of({1: 0, 2: 1, 3: 1, 4: 3}, [Ref(MAIN, RefKind.BRANCH, "4")])
    found = fitted(decided(history, {"2", "4"}), history, (), 2, NOBODY)
    assert "2" in found.kept
    assert found.expired == ("1",)


@given(random_histories(), NUMBERS, SPECS)
def test_what_is_not_cut_off_by_a_threshold_is_refused(history: RefHistory, gone: set[str], spec: int) -> None:
    wanted = gone & history.snapshots.keys()
    if not wanted:
        return
    try:
        cut_us = threshold_to_expire(history, wanted, spec)
    except RefusedForSafety:
        return
    found = rewritten(history, survivors_since(history, cut_us), manner_of(spec))
    assert gone_after(found, spec) == wanted


def line_of_five(*refs: Ref) -> RefHistory:
    return history_of({1: 0, 2: 1, 3: 2, 4: 3, 5: 4}, [Ref(MAIN, RefKind.BRANCH, "5"), *refs])


@pytest.mark.parametrize("spec", [1, 2])
def test_thinning_in_the_middle_keeps_all_that_lies_above(spec: int) -> None:
    history = line_of_five()
    cut = fitted(decided(history, {"4", "3"}), history, (), spec, NOBODY)
    assert cut.expired == ("1", "2")
    # One a month: 1 is to stay, and what lies above it is to go. All from 1 on would have to stay.
    thinned = fitted(decided(history, {"4", "1"}), history, (), spec, NOBODY)
    assert thinned.expired == ()
    assert [str(reason) for reason in thinned.kept["2"]] == [
        "threshold, all lines are cut at one instant, 1970-01-01T00:01:00.000Z"
    ]


@pytest.mark.parametrize("spec", [1, 2])
def test_what_another_branch_keeps_for_longer_keeps_the_young_of_all(spec: int) -> None:
    refs = [Ref(MAIN, RefKind.BRANCH, "2"), Ref("b", RefKind.BRANCH, "6")]
    history = history_of({1: 0, 2: 1, 3: 0, 4: 3, 5: 4, 6: 5}, refs)
    found = fitted(decided(history, {"4"}), history, (), spec, NOBODY)
    assert found.expired == ("1", "3")
    assert "threshold" in str(found.kept["5"][0])


@pytest.mark.parametrize("spec", [1, 2])
def test_an_old_tag_or_branch_does_not_move_the_threshold(spec: int) -> None:
    history = line_of_five(Ref("old", RefKind.TAG, "1"), Ref("stale", RefKind.BRANCH, "2"))
    found = fitted(decided(history, {"4"}), history, (), spec, NOBODY)
    assert found.expired == ("3",)


def test_a_root_with_a_later_clock_is_refused() -> None:
    history = line_of_five()
    late = HistorySnapshot("0", None, 9 * MINUTE, "first")
    odd = RefHistory({**history.snapshots, "0": late}, history.refs)
    with pytest.raises(RefusedForSafety, match="0 is the first snapshot"):
        fitted(decided(odd, {"4"}), odd, (), 1, NOBODY)


def test_a_clock_that_ran_back_is_refused() -> None:
    history = line_of_five()
    back = HistorySnapshot("4", "3", 1 * MINUTE, "a clock that was behind")
    odd = RefHistory({**history.snapshots, "4": back}, history.refs)
    with pytest.raises(RefusedForSafety, match="3 is to stay below 4"):
        fitted(decided(odd, {"3"}), odd, (), 1, NOBODY)


@pytest.mark.parametrize("spec", [1, 2])
def test_the_designs_sample(spec: int) -> None:
    kept = survivors_since(sample(), SAMPLE_THRESHOLD)
    found = fitted(decided(sample(), kept), sample(), (), spec, NOBODY)
    assert set(found.expired) == {"1", "2", "4", "6", "7"}


def test_refs_that_go_take_what_only_they_hold() -> None:
    gone = Ref("b", RefKind.BRANCH, "4")
    history = history_of({1: 0, 2: 1, 3: 0, 4: 3}, [Ref(MAIN, RefKind.BRANCH, "2"), gone])
    decision = Decision({"0": RULE, "1": RULE, "2": RULE}, ("3", "4"), ("b",), 0)
    assert fitted(decision, history, [gone], 1, NOBODY).expired == ("3", "4")
