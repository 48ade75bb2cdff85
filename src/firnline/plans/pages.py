"""What a person reads, as a value: lines, grids and hints, and how figures are said. Text and HTML
are two renderings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from firnline.callers import in_callers_words
from firnline.foreign import harmless
from firnline.model.files import Tally
from firnline.plans.fitting import grid_lines, stays_in_line, turned
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


class Tone(StrEnum):
    """What a colour means, where there is one: the words say it too."""

    KEPT = "kept"
    GOES = "goes"
    REFUSED = "refused"
    HEADING = "heading"
    HINT = "hint"


Paint = Callable[[str, Tone], str]
"""Returns a text in the colour of a tone, for what shows colours."""


def unpainted(text: str, tone: Tone) -> str:
    return text


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    tone: Tone | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of texts under optional headings; columns named in `right` align right. `tones` are those of the rows, from
    the first on; the column `toned` shows them. `narrow`: the same in fewer or shorter columns, of which the first that
    fits is shown where these would not; there `below` is told under each row.
    """

    rows: tuple[tuple[str, ...], ...]
    headings: tuple[str, ...] = ()
    right: frozenset[int] = frozenset()
    tones: tuple[Tone | None, ...] = ()
    toned: int = 0
    below: tuple[str, ...] = ()
    narrow: tuple[Grid, ...] = ()


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

    def to_text(self, width: int | None = None, paint: Paint = unpainted) -> str:
        """Returns the page for a terminal of a width, or for a file: readable without colour, hints last and each once.
        What others wrote is made harmless here, and nowhere else.
        """
        body = [line for block in self.blocks if not isinstance(block, Hint) for line in _lines(block, width, paint)]
        said = dict.fromkeys(harmless(in_callers_words(block.text)) for block in self.blocks if isinstance(block, Hint))
        hints = [line for text in said for line in _hint_lines(text, width, paint)]
        return "\n".join([*body, "", *hints] if hints else body)

    def without_hints(self) -> Page:
        return Page(tuple(block for block in self.blocks if not isinstance(block, Hint)))

    def to_html(self) -> Markup:
        """Returns the page for a notebook."""
        return joined(map(_block_html, self.blocks))


def _lines(block: Line | Grid | Drawn, width: int | None, paint: Paint) -> list[str]:
    if isinstance(block, Line):
        lines = turned(harmless(block.text), width, "  ")
        return lines if block.tone is None else [paint(line, block.tone) for line in lines]
    if isinstance(block, Drawn):
        return [f"  {harmless(line)}" for line in block.lines]
    return _grid_lines(block, width, paint) if block.rows or block.headings else []


def _grid_lines(grid: Grid, width: int | None, paint: Paint) -> list[str]:
    if width is not None and grid.narrow and not stays_in_line(_texts(grid), grid.right, width):
        fitting = (each for each in grid.narrow if stays_in_line(_texts(each), each.right, width))
        grid = next(fitting, grid)
    return list(_lines_of_grid(grid, width, paint))


def _texts(grid: Grid) -> list[tuple[str, ...]]:
    return [tuple(map(harmless, row)) for row in ([grid.headings] if grid.headings else []) + list(grid.rows)]


def _lines_of_grid(grid: Grid, width: int | None, paint: Paint) -> Iterator[str]:
    heads, rows = 1 if grid.headings else 0, _texts(grid)

    def painted(row: int, column: int, text: str) -> str:
        if row < heads:
            return paint(text, Tone.HEADING)
        tone = grid.tones[row - heads] if row - heads < len(grid.tones) else None
        return text if tone is None or column != grid.toned else paint(text, tone)

    below = tuple(map(harmless, grid.below))
    return grid_lines(rows, grid.right, width, painted, headed=bool(heads), below=below)


def _hint_lines(text: str, width: int | None, paint: Paint) -> list[str]:
    first, *rest = turned(f"hint: {text}", width, "      ")
    return [paint("hint:", Tone.HINT) + first.removeprefix("hint:"), *rest]


def _block_html(block: Block) -> Markup:
    match block:
        case Line(text):
            return paragraph(text)
        case Drawn(lines):
            return element("pre", joined(f"{harmless(line)}\n" for line in lines))
        case Hint(text):
            return paragraph(element("em", f"hint: {in_callers_words(text)}"))
        case Grid(rows, headings, right):
            return table(headings, rows, right)
