"""Progress on a terminal's stderr; silent where nobody watches."""

from __future__ import annotations

import sys
import time

from firnline.plans.wording import number
from firnline.ports.progress import Progress, Silent

_PAUSE_S = 0.1


class TerminalProgress:
    """One line that is written over, at most ten times a second."""

    def __init__(self) -> None:
        self._started: dict[str, tuple[float, int]] = {}
        self._said = 0.0

    def step(self, what: str, done: int, total: int | None = None) -> None:
        now = time.monotonic()
        begun, already = self._started.setdefault(what, (now, done))
        finished = total is not None and done >= total
        if now - self._said < _PAUSE_S and not finished:
            return
        self._said = now
        of = "" if total is None else f" of {number(total)}"
        rate = f", {number(round((done - already) / (now - begun)))}/s" if now - begun >= 1 else ""
        sys.stderr.write(f"\r\x1b[2K{what}: {number(done)}{of}{rate}" + ("\r\x1b[2K" if finished else ""))
        sys.stderr.flush()


def progress_for(as_json: bool) -> Progress:
    return TerminalProgress() if sys.stderr.isatty() and not as_json else Silent()
