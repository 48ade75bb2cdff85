"""Drawings of other histories than the sample: long ones are folded, deep ones narrow, and foreign names do no harm."""

from __future__ import annotations

import unicodedata

from hypothesis import given

from firnline.formats.icechunk.expiring.ancestry import RefHistory, survivors_since
from firnline.formats.icechunk.expiring.rewriting import Manner, rewritten
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.model.snapshots import MAIN, Ref, RefKind
from firnline.plans.graph.text import WIDTH

from .histories import MINUTE, drawn_lines, history_of, random_histories

ROOT = "1CECHNKREP0F1RSTCMT0"


def row(length: int, *refs: Ref) -> RefHistory:
    return history_of({each: each - 1 for each in range(1, length + 1)}, refs)


def test_a_long_row_is_folded() -> None:
    history = row(1_000, Ref(MAIN, RefKind.BRANCH, "1000"), Ref("v1", RefKind.TAG, "200"))
    found = drawn_lines(rewritten(history, survivors_since(history, 900 * MINUTE)))
    assert found.before == (
        "o 0 1970-01-01 00:00",
        ". 1 1970-01-01 00:01",
        ": 197 more are held by a ref",
        ". 199 1970-01-01 03:19",
        ". 200 1970-01-01 03:20 tag v1",
        "x 201 1970-01-01 03:21",
        ": 697 more go",
        "x 899 1970-01-01 14:59",
        "^ 900 1970-01-01 15:00",
        "o 901 1970-01-01 15:01",
        ": 97 more stay",
        "o 999 1970-01-01 16:39",
        "o 1000 1970-01-01 16:40 main",
    )
    assert found.after == (
        "o 0 1970-01-01 00:00",
        "|-^ 900 1970-01-01 15:00",
        "| o 901 1970-01-01 15:01",
        "| : 97 more stay",
        "| o 999 1970-01-01 16:39",
        "| o 1000 1970-01-01 16:40 main",
        ". 1 1970-01-01 00:01",
        ": 197 more are held by a ref",
        ". 199 1970-01-01 03:19",
        ". 200 1970-01-01 03:20 tag v1",
        "699 snapshots no ref leads to",
    )


def test_what_no_ref_led_to_is_told_apart_from_what_goes() -> None:
    history = history_of({1: 0, 2: 1, 3: 1}, [Ref(MAIN, RefKind.BRANCH, "2")])
    for manner in Manner:
        found = drawn_lines(rewritten(history, survivors_since(history, 2 * MINUTE), manner))
        assert [line.lstrip("| -")[:3] for line in found.before] == ["o 0", "x 1", "^ 2", "? 3"]
        assert [line[:3] for line in found.after] == ["o 0", "^ 2", "2 s"]


def test_four_in_a_row_are_all_shown() -> None:
    found = drawn_lines(rewritten(row(5, Ref(MAIN, RefKind.BRANCH, "5")), set()))
    assert [line.split()[1] for line in found.before] == ["0", "1", "2", "3", "4", "5"]


def test_a_branch_at_every_commit_takes_one_step_to_the_right() -> None:
    parents = {each: each - 1 for each in range(1, 500)} | {each: each - 500 for each in range(501, 1_000)}
    refs = [Ref(f"b{each}", RefKind.BRANCH, str(each)) for each in range(501, 1_000)]
    history = history_of(parents, [Ref(MAIN, RefKind.BRANCH, "499"), *refs])
    found = drawn_lines(rewritten(history, survivors_since(history, 0)))
    assert len(found.before) == 999
    assert {line.index("o ") for line in found.before} == {0, 2}


def test_real_ids_and_names_of_any_kind_fit_a_terminal() -> None:
    tip = "W866D1CQE7AH1D0PWHMG"
    names = ["very-long-" * 20, "測" * 60, "a\x1b[31mb"]
    refs = [Ref(name, RefKind.TAG, at) for name, at in zip(names, (ROOT, tip, tip), strict=True)]
    snapshots = {ROOT: HistorySnapshot(ROOT, None, 0, ""), tip: HistorySnapshot(tip, ROOT, MINUTE, "")}
    found = drawn_lines(rewritten(RefHistory(snapshots, (*refs, Ref(MAIN, RefKind.BRANCH, tip))), set()))
    assert found.before[1].startswith(f". {tip} 1970-01-01 00:01 main, tag a\\x1b[31mb, tag 測")
    widths = [sum(2 if unicodedata.east_asian_width(letter) == "W" else 1 for letter in line) for line in found.before]
    assert all(WIDTH - 1 <= width <= WIDTH for width in widths)


@given(random_histories())
def test_every_snapshot_is_drawn_once_under_what_it_follows(history: RefHistory) -> None:
    rewriting = rewritten(history, survivors_since(history, 5 * MINUTE))
    found = drawn_lines(rewriting)
    folded = sum(int(line.lstrip("| -").split()[1]) for line in found.before if line.lstrip("| -").startswith(":"))
    told = [line.lstrip("| -").split()[1] for line in found.before if not line.lstrip("| -").startswith(":")]
    assert len(told) == len(set(told)) == len(history.snapshots) - folded
    places = {name: place for place, name in enumerate(told)}
    parents = {name: history.snapshots[name].parent for name in told}
    assert all(places[name] > places[parent] for name, parent in parents.items() if parent in places)
    after = [line.lstrip("| -").split()[1] for line in found.after if line.lstrip("| -")[0] in "o^."]
    assert rewriting.dangling.isdisjoint(after)
