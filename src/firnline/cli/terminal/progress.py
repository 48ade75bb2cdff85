"""Progress where a person watches: a bar for each step under way that lasts, and nothing left of it afterwards.

Steps of several threads are several bars. What is drawn is erased before anything else is written to the terminal, and
however the command ends: a page, an error or a prompt begins on a line of its own.
"""

from __future__ import annotations

import logging
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from firnline.cli.terminal.manners import is_quiet, is_verbose
from firnline.plans.pages import number
from firnline.ports.progress import Progress, Silent
from firnline.settings import logs_json

SHOWN_AFTER_S = 1.0
"""A step that is over sooner is not drawn: it would only flicker."""
_PAUSE_S, _TICK_S, _ASIDE_S = 0.1, 0.25, 0.5
_BAR, _MOST = 20, 6
_BEHIND = 3
"""What stays free behind a bar: room for the cursor, and for the ^C that a terminal writes itself. Where that began
another line, the bar above would stay.
"""
_MINUTE_S, _HOUR_S = 60, 3600


@dataclass(slots=True)
class StepBar:
    """One step under way: what, from when, how far."""

    what: str
    begun: float
    already: int
    done: int
    total: int | None

    def rate(self, now: float) -> float:
        passed = now - self.begun
        return (self.done - self.already) / passed if passed > 0 else 0.0

    def text(self, now: float, width: int, full: str = "█", empty: str = "░") -> str:
        """Returns the line that is drawn; on a narrow terminal without what comes last."""
        figures = [number(self.done) + ("" if self.total is None else f" of {number(self.total)}")]
        rate = self.rate(now)
        figures += [f"{number(round(rate))}/s"] if rate >= 1 else []
        if self.total:
            share = min(1.0, self.done / self.total)
            filled = round(share * _BAR)
            head = f"{self.what}: {share:>4.0%} {full * filled}{empty * (_BAR - filled)}"
            figures += [f"{spelled_s((self.total - self.done) / rate)} left"] if rate > 0 else []
        else:
            head = f"{self.what}:"
            figures += [spelled_s(now - self.begun)]
        return _fitting(head, figures, width)

    def ended_text(self, now: float) -> str:
        """Returns what is said of a step that is over."""
        rate = f", {number(round(self.rate(now)))}/s" if self.rate(now) >= 1 else ""
        return f"{self.what}: {number(self.done)} in {now - self.begun:.1f} s{rate}"


def _fitting(head: str, figures: list[str], width: int) -> str:
    while figures and len(head) + 1 + len(", ".join(figures)) > width:
        figures = figures[:-1]
    return f"{head} {', '.join(figures)}".rstrip()[:width]


def spelled_s(seconds: float) -> str:
    """Returns '8 s', '3 min', '2 h 10 min'."""
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S} s"
    return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S} min"


class TerminalProgress:
    """Bars that are written over, at most ten times a second; or lines of what is over, or both."""

    def __init__(
        self,
        stream: TextIO,
        *,
        draws: bool = True,
        tells: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream, self._draws, self._tells, self._clock = stream, draws, tells, clock
        self._bars: dict[tuple[str, int], StepBar] = {}
        self._drawn, self._said = 0, 0.0
        self._lock = threading.RLock()
        self._ticker: threading.Thread | None = None

    def step(self, what: str, done: int, total: int | None = None) -> None:
        with self._lock:
            now, key = self._clock(), (what, threading.get_ident())
            self._end_others(key, now)
            bar = self._bars.get(key)
            if bar is None or done < bar.done:
                bar = self._bars[key] = StepBar(what, now, done, done, total)
            bar.done, bar.total = done, total
            if total is not None and done >= total:
                self._end(key, now)
            elif now - self._said >= _PAUSE_S:
                self._draw(now)
        self._tick()

    def clear(self) -> None:
        """Erases what is drawn, and ends every step: the next thing on this terminal is something else."""
        with self._lock:
            now = self._clock()
            for key in list(self._bars):
                self._end(key, now)
            self._erase()

    def stand_aside(self) -> None:
        """Erases what is drawn, so that a line of the log has room; each step goes on, and is drawn below that. Not at
        once: the line is written after this, and the ticker may come before it.
        """
        with self._lock:
            self._erase()
            self._said = self._clock() + _ASIDE_S

    def _end_others(self, key: tuple[str, int], now: float) -> None:
        """Ends what this thread did before without knowing how much it would be: nobody else says that it is over."""
        for other, bar in list(self._bars.items()):
            if other != key and other[1] == key[1] and bar.total is None:
                self._end(other, now)

    def _end(self, key: tuple[str, int], now: float) -> None:
        bar = self._bars.pop(key)
        self._erase()
        if self._tells:
            self._stream.write(f"{bar.ended_text(now)}\n")
            self._stream.flush()

    def _tick(self) -> None:
        """Keeps time going on the terminal while a step says nothing."""
        if self._draws and self._ticker is None:
            self._ticker = threading.Thread(target=self._go_on, daemon=True)
            self._ticker.start()

    def _go_on(self) -> None:
        while True:
            time.sleep(_TICK_S)
            with self._lock:
                if not self._bars:
                    self._ticker = None
                    return
                now = self._clock()
                if now - self._said >= _PAUSE_S:
                    self._draw(now)

    def _draw(self, now: float) -> None:
        lasting = [bar for bar in self._bars.values() if now - bar.begun >= SHOWN_AFTER_S]
        if not self._draws or not lasting:
            return
        self._said = now
        width = max(20, shutil.get_terminal_size().columns - _BEHIND)
        letters = "█░" if (self._stream.encoding or "").lower().startswith("utf") else "#."
        lines = [bar.text(now, width, *letters) for bar in lasting[:_MOST]]
        lines += [f"and {len(lasting) - _MOST} more"] if len(lasting) > _MOST else []
        self._stream.write(_back_over(self._drawn) + "\n".join(lines))
        self._stream.flush()
        self._drawn = len(lines)

    def _erase(self) -> None:
        if self._drawn:
            self._stream.write(_back_over(self._drawn))
            self._stream.flush()
            self._drawn = 0


def _back_over(lines: int) -> str:
    """Returns what takes the cursor to the first of the lines that were drawn, and erases them."""
    return "" if not lines else "\r" + (f"\x1b[{lines - 1}A" if lines > 1 else "") + "\x1b[J"


_showing: list[TerminalProgress] = []


def progress_for(as_json: bool) -> Progress:
    """Returns what shows how far long work has come: nothing where programs read, or with -q."""
    if as_json or logs_json() or is_quiet():
        return Silent()
    draws, tells = sys.stderr.isatty(), is_verbose()
    if not draws and not tells:
        return Silent()
    logging.getLogger("firnline").addFilter(_make_room)  # the very same one is added once
    _showing[:] = [TerminalProgress(sys.stderr, draws=draws, tells=tells)]
    return _showing[0]


def _make_room(record: logging.LogRecord) -> bool:
    """Returns that a line of the log is wanted, which is about to be written to the same terminal."""
    for each in _showing:
        each.stand_aside()
    return True


def clean_line() -> None:
    """Erases what progress has drawn; to be called before anything else is written to the terminal."""
    for each in _showing:
        each.clear()
