"""A page as the terminal at hand shows it: as wide as that is, and in colours that mean something."""

from __future__ import annotations

import os
import shutil
from typing import TextIO

from firnline.plans.pages import Page, Tone, unpainted

_CODES = {
    Tone.KEPT: "32",
    Tone.GOES: "33",
    Tone.REFUSED: "31;1",
    Tone.HEADING: "2",
    Tone.HINT: "36",
}
_NARROWEST = 40


def text_of(page: Page, stream: TextIO) -> str:
    """Returns the page as it is written to a stream. A file or a pipe gets long lines and no colours."""
    return page.to_text(width_of(stream), painted if has_colours(stream) else unpainted)


def width_of(stream: TextIO) -> int | None:
    """Returns how wide a terminal is; None for what is none."""
    return max(_NARROWEST, shutil.get_terminal_size().columns) if stream.isatty() else None


def has_colours(stream: TextIO) -> bool:
    """Tells whether colours are shown there, and wanted: see no-color.org."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, tone: Tone) -> str:
    """Returns the text in the tone's colour; blanks around it stay as they are."""
    shown = text.strip()
    if not shown:
        return text
    before, _, after = text.partition(shown)
    return f"{before}\x1b[{_CODES[tone]}m{shown}\x1b[0m{after}"
