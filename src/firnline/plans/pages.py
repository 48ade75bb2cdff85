"""What a person reads, as a value: lines, grids and hints, and how figures are said. Text and HTML
are two renderings.
"""

from __future__ import annotations

from dataclasses import dataclass

from firnline.foreign import harmless
from firnline.model.files import Tally
from firnline.model.times import format_instant
from firnline.plans.html.markup import Markup, element, joined, paragraph, table

LONGEST_REASON = 90
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def size(count: int) -> str:
    """Returns bytes as people say them: 0 B, 999 B, 1.5 KiB, 3.1 TiB."""
    value = float(count)
    for unit in _UNITS:
        if round(value, 1) < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"


def number(count: int) -> str:
    return f"{count:,}"


def counted(count: int, noun: str) -> str:
    """Returns '1 file', '2 files'."""
    return f"{number(count)} {noun}" + ("" if count == 1 else "s")


def shortened(reason: str) -> str:
    """Returns a reason that fits into a row: the facts, and the page of one table, have all of it."""
    return reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 1]}…"


def tally(what: Tally) -> str:
    return f"{counted(what.files, 'file')}, {size(what.bytes)}"


def minute(ms: int) -> str:
    """Returns '2026-08-22 09:00', in UTC."""
    return format_instant(ms)[:16].replace("T", " ")


@dataclass(frozen=True, slots=True)
class Line:
    text: str


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of texts under optional headings; columns named in `right` align right."""

    rows: tuple[tuple[str, ...], ...]
    headings: tuple[str, ...] = ()
    right: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Drawn:
    """Lines whose columns mean something: every letter of them is as wide as any other."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hint:
    text: str


Block = Line | Grid | Drawn | Hint


@dataclass(frozen=True, slots=True)
class Page:
    blocks: tuple[Block, ...]

    def to_text(self) -> str:
        """Returns the page for a terminal or a file: readable without colour, hints last. What others wrote is made
        harmless here, and nowhere else.
        """
        body = [line for block in self.blocks if not isinstance(block, Hint) for line in _block_lines(block)]
        hints = [f"hint: {harmless(block.text)}" for block in self.blocks if isinstance(block, Hint)]
        return "\n".join([*body, "", *hints] if hints else body)

    def to_html(self) -> Markup:
        """Returns the page for a notebook."""
        return joined(map(_block_html, self.blocks))


def _block_lines(block: Line | Grid | Drawn) -> list[str]:
    if isinstance(block, Line):
        return [harmless(block.text)]
    if isinstance(block, Drawn):
        return [f"  {harmless(line)}" for line in block.lines]
    written = [block.headings, *block.rows] if block.headings else list(block.rows)
    rows = [tuple(map(harmless, row)) for row in written]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + _padded(row, widths, block.right) for row in rows]


def _padded(row: tuple[str, ...], widths: list[int], right: frozenset[int]) -> str:
    cells = (
        text.rjust(width) if column in right else text.ljust(width)
        for column, (text, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()


def _block_html(block: Block) -> Markup:
    match block:
        case Line(text):
            return paragraph(text)
        case Drawn(lines):
            return element("pre", joined(f"{harmless(line)}\n" for line in lines))
        case Hint(text):
            return paragraph(element("em", f"hint: {text}"))
        case Grid(rows, headings, right):
            return table(headings, rows, right)
