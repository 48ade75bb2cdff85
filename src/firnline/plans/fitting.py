"""Grids and lines that fit a width: they turn at spaces only, so that no word and no number is ever broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap
from unicodedata import combining, east_asian_width

Rows = Sequence[tuple[str, ...]]
Painted = Callable[[int, int, str], str]
GAP, INDENT = "  ", "  "
_NARROW = 22
"""Columns up to this width stay on one line: an instant, a figure with its unit, an id."""


def cells(text: str) -> int:
    """Returns how many columns of a terminal a text takes: letters of some scripts take two, and accents none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def turned(text: str, width: int | None, further: str = "") -> list[str]:
    """Returns a line as lines of at most a width, but for longer words; those after the first begin with `further`."""
    if width is None or cells(text) <= width:
        return [text]
    indent = text[: len(text) - len(text.lstrip())]
    return wrap(
        text.strip(), width, initial_indent=indent, subsequent_indent=indent + further,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def grid_lines(
    rows: Rows,
    right: frozenset[int],
    width: int | None,
    paint: Painted,
    *,
    headed: bool = False,
    below: Sequence[str] = (),
) -> Iterator[str]:
    """Yields the lines of a grid. `paint` gets the row's number, the column's and a text that is aligned already.

    Wide columns of words take several lines where the grid is too wide, then all that are no figures; then cells of the
    last column stand under their rows. Where even that does not fit, every row does: its first cell, and below it the
    others, each after its heading where row 0 has them. `below`: what is told under each row, but under the headings.
    """
    widths = _natural(rows) if width is None else _fitted(rows, right, width - len(INDENT))
    moved: Sequence[str] = ()
    last = len(rows[0]) - 1
    if widths is None:
        rows, moved = _without_wide_ends(rows, right, (width or 0) - len(INDENT), headed)
        widths = _fitted(rows, right, (width or 0) - len(INDENT)) if any(moved) else None
    if widths is None:
        yield from (_told if headed else _stacked)(rows, width or 0, paint)
        return
    beneath = None if width is None else width - 2 * len(INDENT)
    for number, row in enumerate(rows):
        columns = [turned(text, widths[place]) if text else [""] for place, text in enumerate(row)]
        for line in range(max(map(len, columns))):
            shown = (
                paint(number, place, _aligned(each[line] if line < len(each) else "", widths[place], place in right))
                for place, each in enumerate(columns)
            )
            yield (INDENT + GAP.join(shown)).rstrip()
        if moved and moved[number]:
            yield from (2 * INDENT + paint(number, last, each) for each in turned(moved[number], beneath))
        if below and (number or not headed) and (said := below[number - headed]):
            yield from (2 * INDENT + each for each in turned(said, beneath))


def stays_in_line(rows: Rows, right: frozenset[int], width: int) -> bool:
    """Tells whether each row takes one line of a width, but for what turns in wide columns of words."""
    least = _least(rows, right, _NARROW)
    return sum(least) + len(GAP) * (len(least) - 1) <= width - len(INDENT)


def _natural(rows: Rows) -> list[int]:
    return [max(map(cells, column)) for column in zip(*rows, strict=True)]


def _without_wide_ends(rows: Rows, right: frozenset[int], width: int, headed: bool) -> tuple[Rows, Sequence[str]]:
    """Returns the rows without those cells of the last column that do not fit beside the others, and these, one for
    each row: a single long path would else take the columns from all rows. No such cell where the others, or the
    heading of the last column, do not fit either.
    """
    last = len(rows[0]) - 1
    if last < 1 or last in right:
        return rows, ()
    room = width - sum(_least([row[:last] for row in rows], right, _NARROW)) - len(GAP) * last
    stay = [_stands_in(row[last], room) for row in rows]
    if room < -len(GAP) or (headed and not stay[0]):
        return rows, ()
    kept = [row[last] if fits else "" for row, fits in zip(rows, stay, strict=True)]
    moved = ["" if fits else row[last] for row, fits in zip(rows, stay, strict=True)]
    return [(*row[:last], each) if any(kept) else row[:last] for row, each in zip(rows, kept, strict=True)], moved


def _stands_in(text: str, room: int) -> bool:
    """Tells whether a text stands in a column of some room: in one line, or in several where the column is wide."""
    return not text or (_longest_word(text) if room >= _NARROW else cells(text)) <= room


def _aligned(text: str, width: int, right: bool) -> str:
    blank = " " * (width - cells(text))
    return blank + text if right else text + blank


def _fitted(rows: Rows, right: frozenset[int], width: int) -> list[int] | None:
    """Returns the widths of columns that fit together; None if there are none."""
    widths = _natural(rows)
    least, hard = (_least(rows, right, kept) for kept in (_NARROW, 0))
    room = width - len(GAP) * (len(widths) - 1)
    if sum(least) > room:
        least = hard
    if sum(least) > room:
        return None
    while sum(widths) > room:
        place = max(range(len(widths)), key=lambda each: widths[each] - least[each])
        widths[place] -= 1
    return widths


def _least(rows: Rows, right: frozenset[int], kept: int) -> list[int]:
    """Returns how narrow the columns may get that turn at spaces, where those up to a width are kept as they are."""
    natural = _natural(rows)
    words = [max(_longest_word(row[place]) for row in rows) for place in range(len(natural))]
    return [wide if place in right or wide <= kept else max(kept, words[place]) for place, wide in enumerate(natural)]


def _longest_word(text: str) -> int:
    return max(map(cells, text.split()), default=0)


def _stacked(rows: Rows, width: int, paint: Painted) -> Iterator[str]:
    for number, row in enumerate(rows):
        shown = [(place, text) for place, text in enumerate(row) if text]
        for first, (place, text) in enumerate(shown):
            lines = turned(text, width - len(INDENT) * (2 if first else 1))
            yield from (INDENT * (2 if first else 1) + paint(number, place, line) for line in lines)


def _told(rows: Rows, width: int, paint: Painted) -> Iterator[str]:
    """Yields each row as its first cell, and below it what the headings say of it: a cell that is empty is left out."""
    room = width - 2 * len(INDENT)
    for number, row in enumerate(rows[1:], 1):
        yield from (INDENT + paint(number, 0, line) for line in turned(row[0], width - len(INDENT)))
        pieces = [
            piece
            for place, text in enumerate(row[1:], 1)
            if text
            for piece in _said(rows[0][place], text, room, paint, number, place)
        ]
        yield from (2 * INDENT + line for line in _flowing(pieces, room))


def _said(heading: str, text: str, room: int, paint: Painted, number: int, place: int) -> list[tuple[str, int]]:
    """Returns a cell after its heading, with how wide that is; several such pieces where it does not fit a line."""
    lines = turned(f"{heading} {text}", room)
    if len(lines) > 1:
        return [(paint(number, place, line), cells(line)) for line in lines]
    return [(f"{paint(0, place, heading)} {paint(number, place, text)}", cells(lines[0]))]


def _flowing(pieces: Sequence[tuple[str, int]], room: int) -> Iterator[str]:
    """Yields lines with as many pieces on each as fit."""
    line, taken = "", 0
    for piece, wide in pieces:
        if taken and taken + len(GAP) + wide > room:
            yield line
            line, taken = "", 0
        line, taken = (f"{line}{GAP}{piece}", taken + len(GAP) + wide) if taken else (piece, wide)
    if taken:
        yield line
