"""Grids fit a width by turning at spaces: whatever is in them, no word and no number is broken or lost."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.plans.fitting import cells, grid_lines, turned
from firnline.plans.pages import Grid, Hint, Line, Page, Tone

WORDS = st.text(st.characters(whitelist_categories=["Lu", "Nd"], max_codepoint=127), min_size=1, max_size=12)
CELLS = st.lists(WORDS, max_size=8).map(" ".join)
GRIDS = st.integers(1, 5).flatmap(lambda wide: st.lists(st.tuples(*[CELLS] * wide), min_size=1, max_size=6))


def plain(row: int, column: int, text: str) -> str:
    return text


@given(rows=GRIDS, width=st.integers(30, 120), right=st.frozensets(st.integers(0, 4)))
def test_a_grid_fits_and_every_word_of_it_is_there_whole(
    rows: list[tuple[str, ...]], width: int, right: frozenset[int]
) -> None:
    lines = list(grid_lines(rows, right, width, plain))
    assert sorted(word for line in lines for word in line.split()) == sorted(
        word for row in rows for text in row for word in text.split()
    )
    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


@given(rows=GRIDS)
def test_without_a_width_a_row_is_a_line(rows: list[tuple[str, ...]]) -> None:
    assert len(list(grid_lines(rows, frozenset(), None, plain))) == len(rows)


def test_figures_and_instants_stay_on_one_line_and_words_take_several() -> None:
    row = (
        "3000000000000000008",
        "2026-01-09 00:00",
        "1,234,567",
        "branch head main, current, and a rule of many words",
    )
    lines = list(grid_lines([row], frozenset({2}), 76, plain))
    assert lines[0].startswith("  3000000000000000008  2026-01-09 00:00  1,234,567  branch head main,")
    assert len(lines) > 1
    assert all(line.startswith(" " * 50) for line in lines[1:])


def test_what_cannot_stand_side_by_side_stands_one_below_the_other() -> None:
    row = ("a" * 30, "b" * 30)
    assert list(grid_lines([row], frozenset(), 40, plain)) == ["  " + "a" * 30, "    " + "b" * 30]


def test_an_instant_turns_before_rows_stand_one_below_the_other() -> None:
    rows = [("run", "planned (UTC)", "files"), ("a" * 30, "2026-01-09 00:00", "12")]
    assert list(grid_lines(rows, frozenset({2}), 51, plain, headed=True)) == [
        "  run                             planned     files",
        "                                  (UTC)",
        "  " + "a" * 30 + "  2026-01-09     12",
        " " * 34 + "00:00",
    ]


def test_below_the_other_each_cell_stands_after_its_heading() -> None:
    rows = [("run", "state", "planned (UTC)", "held by", "files"), ("a" * 30, "done", "2026-01-09 00:00", "", "1,200")]
    assert list(grid_lines(rows, frozenset({4}), 42, plain, headed=True)) == [
        "  " + "a" * 30,
        "    state done",
        "    planned (UTC) 2026-01-09 00:00",
        "    files 1,200",
    ]


def test_one_long_path_in_the_last_column_takes_the_columns_from_no_row() -> None:
    rows = [
        ("table", "snapshots", ""),
        ("lake.a", "", "manifest is damaged: " + "p" * 40),
        ("lake.b", "1,200", ""),
        ("2 tables", "1,200", ""),
    ]
    assert list(grid_lines(rows, frozenset({1}), 46, plain, headed=True)) == [
        "  table     snapshots",
        "  lake.a",
        "    manifest is damaged:",
        "    " + "p" * 40,
        "  lake.b        1,200",
        "  2 tables      1,200",
    ]


def test_what_fits_in_the_last_column_stays_beside_its_row_and_the_rest_stands_under_its_own() -> None:
    rows = [("table", "files", "state"), ("lake.a", "12", "committed"), ("lake.b", "", "too much for (blast-radius)")]
    assert list(grid_lines(rows, frozenset({1}), 28, plain, headed=True)) == [
        "  table   files  state",
        "  lake.a     12  committed",
        "  lake.b",
        "    too much for",
        "    (blast-radius)",
    ]


@given(rows=GRIDS, width=st.integers(40, 120))
def test_whatever_has_headings_fits_and_is_there_whole(rows: list[tuple[str, ...]], width: int) -> None:
    headings = tuple(f"head{place}" for place in range(len(rows[0])))
    lines = list(grid_lines([headings, *rows], frozenset(), width, plain, headed=True))
    shown = Counter(word for line in lines for word in line.split() if not word.startswith("head"))
    assert shown == Counter(word for row in rows for text in row for word in text.split())
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(("text", "wide"), [("abc", 3), ("表", 2), ("e\u0301", 1), ("größer", 6)])
def test_letters_take_the_room_that_a_terminal_gives_them(text: str, wide: int) -> None:
    assert cells(text) == wide


def test_a_long_line_turns_and_keeps_its_indentation() -> None:
    assert turned("  left alone: one two three", 16, "  ") == ["  left alone:", "    one two", "    three"]


def test_a_hint_is_said_once_and_last() -> None:
    page = Page((Hint("do this"), Line("first"), Hint("do this"), Hint("or that")))
    assert page.to_text() == "first\n\nhint: do this\nhint: or that"


def test_only_what_has_a_tone_is_painted() -> None:
    grid = Grid((("1", "a"), ("2", "b")), ("n", "x"), tones=(Tone.GOES, None), toned=1)
    page = Page((Line("keep 2", Tone.KEPT), grid, Hint("h")))
    shown = page.to_text(paint=lambda text, tone: f"<{tone}>{text}</>")
    assert shown.splitlines() == [
        "<kept>keep 2</>", "  <heading>n</>  <heading>x</>", "  1  <goes>a</>", "  2  b", "", "<hint>hint:</> h",
    ]  # fmt: skip
