"""Random histories: what an expiry never does, in any manner, and what no order of refs and no repetition changes."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from firnline.formats.icechunk.expiring.ancestry import RefHistory, survivors_since
from firnline.formats.icechunk.expiring.expressing import ref_lines, refusals, threshold_for
from firnline.formats.icechunk.expiring.rewriting import Manner, rewritten
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.model.snapshots import MAIN, Ref, RefKind

from .histories import MINUTE, after_ref, history_of, lines_of, random_histories

MANNERS = st.sampled_from(Manner)
THRESHOLDS = st.integers(0, 16).map(lambda minutes: minutes * MINUTE)
DELETED = st.sets(st.sampled_from(RefKind))
NUMBERS = st.sets(st.integers(0, 14).map(str))


@given(random_histories(), NUMBERS, st.randoms())
def test_any_order_of_refs_ends_in_the_same_history(history: RefHistory, kept: set[str], order: object) -> None:
    survivors = kept & history.snapshots.keys()
    refs = list(history.refs)
    order.shuffle(refs)  # type: ignore[attr-defined]
    here, before, after = history, lines_of(history), lines_of(rewritten(history, survivors).after)
    for ref in refs:
        here = after_ref(here, ref, survivors)
        # Who reads between two refs sees the old or the new line of a ref, and no third.
        assert all(line in (before[name], after[name]) for name, line in lines_of(here).items())
    assert rewritten(history, survivors).after == here
    assert rewritten(RefHistory(history.snapshots, tuple(refs)), survivors).after.snapshots == here.snapshots


@given(random_histories(), THRESHOLDS, st.randoms())
def test_the_library_s_one_ref_after_the_other_ends_in_the_same_history(
    history: RefHistory, threshold: int, order: object
) -> None:
    refs = list(history.refs)
    order.shuffle(refs)  # type: ignore[attr-defined]
    survivors, here = survivors_since(history, threshold), history
    final = rewritten(history, survivors, Manner.VERSION_1).after
    before, after = lines_of(history), lines_of(final)
    for ref in refs:
        here = here.edited(rewritten(RefHistory(here.snapshots, (ref,)), survivors, Manner.VERSION_1).parents)
        # A line may be cut off at another's expired tip first, and then again at its own end: shorter each time.
        for name, line in lines_of(here).items():
            assert set(after[name]) <= set(line) <= set(before[name])
            assert line == [each for each in before[name] if each in line]
    assert here == final


@given(random_histories(), THRESHOLDS, MANNERS, DELETED)
def test_what_never_happens(history: RefHistory, threshold: int, manner: Manner, delete: set[RefKind]) -> None:
    survivors = survivors_since(history, threshold)
    found = rewritten(history, survivors, manner, delete)
    roots = {each.id for each in history.snapshots.values() if each.parent is None}
    assert found.after.snapshots.keys() <= history.snapshots.keys()
    assert roots <= found.after.snapshots.keys()
    assert found.parents.keys().isdisjoint(roots)
    assert set(found.parents.values()) <= roots
    assert all(history.snapshots[name].parent != parent for name, parent in found.parents.items())
    for name, each in found.after.snapshots.items():
        was = history.snapshots[name]
        assert (each.id, each.flushed_us, each.message) == (was.id, was.flushed_us, was.message)
    assert MAIN in [ref.name for ref in found.after.refs]
    assert all(ref.kind in delete and ref in found.expired_refs for ref in found.deleted)
    assert {ref.snapshot for ref in found.after.refs}.isdisjoint(found.dangling)
    assert found.after.reachable() <= found.after.snapshots.keys()
    assert found.released <= found.dangling
    assert (survivors & found.released) <= set()
    assert found.dangling - found.released == history.snapshots.keys() - history.reachable()


@given(random_histories(), THRESHOLDS, MANNERS)
def test_each_line_keeps_its_survivors_in_their_order(history: RefHistory, threshold: int, manner: Manner) -> None:
    survivors = survivors_since(history, threshold)
    before, after = lines_of(history), lines_of(rewritten(history, survivors, manner).after)
    assert before.keys() == after.keys()
    for ref, line in after.items():
        was = before[ref]
        assert line == [each for each in was if each in line]
        assert (line[0], line[-1]) == (was[0], was[-1])
        assert [each for each in line if each in survivors] == [each for each in was if each in survivors]
        if was[0] in survivors:
            # On version 2 a survivor still follows an expired snapshot that a ref points to, if that came right before.
            beside = {ref.snapshot for ref in history.refs} if manner is Manner.VERSION_2 else set()
            assert set(line[:-1]) - beside == set(was[:-1]) & survivors - beside
        elif manner is Manner.DESIGNED:
            assert line == was


@given(random_histories(), NUMBERS)
def test_any_rule_s_survivors_stay_and_so_does_what_lies_between(history: RefHistory, kept: set[str]) -> None:
    survivors = kept & history.snapshots.keys()
    found = rewritten(history, survivors)
    for line in ref_lines(history, survivors):
        was, now = list(history.line(line.ref.snapshot)), list(found.after.line(line.ref.snapshot))
        assert [each for each in now if each in survivors] == [each for each in was if each in survivors]
        inner = [each in survivors for each in was[:-1]]
        assert line.is_young_end == (sorted(inner, reverse=True) == inner)
        if line.is_young_end and not line.expired:
            assert set(now[:-1]) <= survivors
        if line.gap is not None:
            gone, stays = line.gap
            assert was.index(gone) < was.index(stays) < len(was) - 1
            assert gone not in survivors
            assert stays in survivors


@given(random_histories(), THRESHOLDS, MANNERS, DELETED)
def test_a_second_time_changes_nothing(
    history: RefHistory, threshold: int, manner: Manner, delete: set[RefKind]
) -> None:
    once = rewritten(history, survivors_since(history, threshold), manner, delete).after
    twice = rewritten(once, survivors_since(once, threshold), manner, delete)
    assert twice.after == once
    assert twice.parents == {}
    assert twice.released == set()
    assert twice.deleted == ()


@given(random_histories(), THRESHOLDS, THRESHOLDS, MANNERS, DELETED)
def test_a_later_threshold_after_an_earlier_one_is_the_later_one_alone(
    history: RefHistory, one: int, other: int, manner: Manner, delete: set[RefKind]
) -> None:
    early, late = sorted((one, other))
    first = rewritten(history, survivors_since(history, early), manner, delete).after
    both = lines_of(rewritten(first, survivors_since(first, late), manner, delete).after)
    alone = lines_of(rewritten(history, survivors_since(history, late), manner, delete).after)
    assert both.keys() == alone.keys()
    young = survivors_since(history, late)
    for ref, line in both.items():
        if line[0] in young or manner is not Manner.DESIGNED:
            assert line == alone[ref]
        else:  # its tip expired only later: the earlier threshold had shortened a view that the later one leaves alone
            assert set(line) <= set(alone[ref])


@given(random_histories(), THRESHOLDS, MANNERS, DELETED)
def test_more_goes_with_expired_refs_and_in_the_library_s_manners(
    history: RefHistory, threshold: int, manner: Manner, delete: set[RefKind]
) -> None:
    survivors = survivors_since(history, threshold)
    kept, deleted = rewritten(history, survivors, manner), rewritten(history, survivors, manner, delete)
    assert kept.dangling <= deleted.dangling
    assert kept.expired_refs == deleted.expired_refs
    designed = rewritten(history, survivors)
    assert designed.dangling <= kept.dangling


@given(random_histories(), NUMBERS, MANNERS)
def test_what_a_threshold_can_say_is_told_and_it_says_the_same(
    history: RefHistory, kept: set[str], manner: Manner
) -> None:
    survivors = kept & history.snapshots.keys()
    trouble = refusals(history, survivors)
    threshold = threshold_for(history, survivors)
    by_time = survivors_since(history, threshold)
    reached = {name for name in history.reachable() if history.snapshots[name].parent}
    if not trouble:
        assert by_time & reached == survivors & reached
        assert lines_of(rewritten(history, by_time, manner).after) == lines_of(
            rewritten(history, survivors, manner).after
        )
    else:
        # A survivor that no ref leads to counts too: version 2 lists such, and would not afterwards.
        inner = {name for name in survivors if history.snapshots[name].parent}
        others = (survivors_since(history, minutes * MINUTE) for minutes in range(17))
        assert not any(each & reached == survivors & reached and inner <= each for each in others)


@given(random_histories(), NUMBERS)
def test_the_library_is_not_asked_for_gaps(history: RefHistory, kept: set[str]) -> None:
    survivors = kept & history.snapshots.keys()
    assume(any(not line.is_young_end for line in ref_lines(history, survivors)))
    for manner in (Manner.VERSION_1, Manner.VERSION_2):
        with pytest.raises(ValueError, match="has a gap"):
            rewritten(history, survivors, manner)


def line_of_five(*refs: Ref) -> RefHistory:
    return history_of({1: 0, 2: 1, 3: 2, 4: 3, 5: 4}, [Ref(MAIN, RefKind.BRANCH, "5"), *refs])


def test_thinning_in_the_middle_is_refused_with_the_snapshots_that_make_it_so() -> None:
    assert refusals(line_of_five(), {"5", "4", "2"}) == ["branch main: 2 is to stay below 3, which is to go"]
    assert refusals(line_of_five(), {"5", "4", "0"}) == []
    assert rewritten(line_of_five(), {"5", "4", "2"}).dangling == {"1"}


def test_a_window_of_its_own_for_a_branch_is_refused() -> None:
    history = history_of({1: 0, 2: 1, 3: 0, 4: 3}, [Ref(MAIN, RefKind.BRANCH, "2"), Ref("b", RefKind.BRANCH, "4")])
    assert all(line.is_young_end for line in ref_lines(history, {"2", "4"}))
    assert refusals(history, {"2", "4"}) == [
        "3 is to go, of 1970-01-01T00:03:00.000Z, and 2 to stay, which is no younger: 1970-01-01T00:02:00.000Z"
    ]


def test_a_root_with_a_later_clock_is_refused() -> None:
    history = line_of_five()
    late = HistorySnapshot("0", None, 9 * MINUTE, "first")
    odd = RefHistory({**history.snapshots, "0": late}, history.refs)
    assert refusals(odd, {"5", "4"}) == ["0 is the first snapshot, and younger than some that are to go"]
    assert refusals(odd, {"5", "4", "3", "2", "1"}) == []


def test_a_tip_older_than_its_parent_is_a_gap() -> None:
    history = line_of_five()
    tip = HistorySnapshot("5", "4", 2 * MINUTE, "a clock that was behind")
    odd = RefHistory({**history.snapshots, "5": tip}, history.refs)
    survivors = survivors_since(odd, 3 * MINUTE)
    assert refusals(odd, survivors) == ["branch main: 4 is to stay below 5, which is to go"]
    assert rewritten(odd, survivors).after == odd


def test_refs_that_point_to_the_root() -> None:
    first = Ref("first", RefKind.TAG, "0")
    history = line_of_five(first)
    expected = {Manner.DESIGNED: (), Manner.VERSION_1: (first,), Manner.VERSION_2: ()}
    for manner, deleted in expected.items():
        assert rewritten(history, survivors_since(history, 4 * MINUTE), manner, {RefKind.TAG}).deleted == deleted


def recorded_history() -> RefHistory:
    """A history that icechunk 1.1.21 and 2.3.0 expired: six commits of main, two of a branch, two old refs."""
    parents = {1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5, 7: 3, 8: 7}
    branches = {MAIN: "6", "feat": "8", "stale": "1"}
    refs = [Ref(name, RefKind.BRANCH, at) for name, at in branches.items()]
    return history_of(parents, [*refs, Ref("old", RefKind.TAG, "2")])


@pytest.mark.parametrize(
    ("manner", "old", "unlisted"),
    [(Manner.VERSION_1, ["2", "0"], set()), (Manner.VERSION_2, ["2", "1", "0"], {"3", "4"})],
)
def test_what_both_libraries_did(manner: Manner, old: list[str], unlisted: set[str]) -> None:
    history = recorded_history()
    survivors = survivors_since(history, 5 * MINUTE)
    found = rewritten(history, survivors, manner)
    assert lines_of(found.after) == {
        ("branch", MAIN): ["6", "5", "0"],
        ("branch", "feat"): ["8", "7", "0"],
        ("branch", "stale"): ["1", "0"],
        ("tag", "old"): old,
    }
    assert history.snapshots.keys() - found.after.snapshots.keys() == unlisted
    assert found.released == {"3", "4"}
    second = rewritten(found.after, survivors, manner, set(RefKind))
    assert [ref.name for ref in second.deleted] == ["stale", "old"]
    assert second.released == {"1", "2"}


@pytest.mark.parametrize(
    ("manner", "deleted", "released"),
    [
        (Manner.VERSION_1, {"t-init", "t1", "t-tip", "same"}, {"1", "2"}),
        (Manner.VERSION_2, {"t1", "t-tip", "same"}, {"1", "2"}),
    ],
)
def test_what_both_libraries_did_with_a_threshold_in_the_future(
    manner: Manner, deleted: set[str], released: set[str]
) -> None:
    tags = [Ref(name, RefKind.TAG, at) for name, at in (("t-init", "0"), ("t1", "2"), ("t-tip", "3"))]
    refs = [Ref(MAIN, RefKind.BRANCH, "3"), Ref("same", RefKind.BRANCH, "3"), *tags]
    history = history_of({1: 0, 2: 1, 3: 2}, refs)
    assert rewritten(history, set(), manner).released == {"1"}
    found = rewritten(history, set(), manner, set(RefKind))
    assert {ref.name for ref in found.deleted} == deleted
    assert found.released == released
    assert lines_of(found.after)["branch", MAIN] == ["3", "0"]
