"""How a throttle's rate went over time: watched, and drawn as SVG, with a mark wherever the store asked for less."""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

from firnline.ports.stores import Budget
from firnline.stores.delete import ObjectDelete
from firnline.stores.throttle import Clock, Lane, Lanes, Throttle

_WIDTH, _HEIGHT, _EDGE = 720, 260, 48


class Moment(NamedTuple):
    """One point of the curve. `at` is in seconds of the clock that the throttle was given."""

    at: float
    rate: float
    batch: int
    event: str


class WatchedThrottle(Throttle):
    """A throttle that remembers its pace after every answer, oldest first."""

    def __init__(self, lanes: Lanes | None = None, budget: Budget | None = None, clock: Clock = time.monotonic) -> None:
        super().__init__(lanes, budget, clock)
        self.curve: list[Moment] = []
        self._watching = Lock()

    def slowed(self, lane: Lane) -> None:
        with self._watching:
            before = self._pace(lane).cut_at
            super().slowed(lane)
            self._note(lane, "slow down" if self._pace(lane).cut_at == before else "halved")

    def went_well(self, lane: Lane) -> None:
        with self._watching:
            super().went_well(lane)
            self._note(lane, "ok")

    def _note(self, lane: Lane, event: str) -> None:
        pace = self._pace(lane)
        self.curve.append(Moment(self._clock(), pace.rate, pace.batch, event))


def watched(delete: ObjectDelete) -> WatchedThrottle:
    """Returns the throttle that paces these deletes from now on, within the budget that they had."""
    throttle = WatchedThrottle(delete.throttle.lanes, delete.throttle.budget)
    delete.throttle = throttle
    return throttle


def drawn(curve: Sequence[Moment], title: str) -> str:
    """Returns the drawing; time goes to the right in seconds, keys a second go up from zero."""
    begun, seconds = curve[0].at, max(curve[-1].at - curve[0].at, 0.001)
    highest = max(each.rate for each in curve)

    def x(at: float) -> float:
        return _EDGE + (at - begun) / seconds * (_WIDTH - 2 * _EDGE)

    def y(rate: float) -> float:
        return _HEIGHT - _EDGE - rate / highest * (_HEIGHT - 2 * _EDGE)

    line = " ".join(f"{x(each.at):.1f},{y(each.rate):.1f}" for each in curve)
    cuts = (each for each in curve if each.event == "halved")
    marks = "".join(f'<circle cx="{x(each.at):.1f}" cy="{y(each.rate):.1f}" r="3" fill="#c0392b"/>' for each in cuts)
    return _framed(title, highest, seconds, f'<polyline points="{line}" fill="none" stroke="#1f5f8b"/>{marks}')


def _framed(title: str, highest: float, seconds: float, inner: str) -> str:
    low, right = _HEIGHT - _EDGE, _WIDTH - _EDGE
    axes = f'<path d="M{_EDGE} {_EDGE}V{low}H{right}" fill="none" stroke="#444"/>'
    words = [
        (_EDGE, _EDGE - 20, title),
        (4, _EDGE + 4, f"{highest:,.0f}/s"),
        (4, low, "0"),
        (right - 40, low + 18, f"{seconds:,.1f} s"),
    ]
    texts = "".join(f'<text x="{x}" y="{y}">{word}</text>' for x, y, word in words)
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{axes}{inner}{texts}</svg>\n'
