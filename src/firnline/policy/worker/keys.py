"""What firnline.yaml says of the worker.

worker:
  window: 22:00-06:00 Europe/Berlin   # in which hours it works
  budget: 20%                         # of what a store takes, for reads, writes and deletes
  iops: measured                      # what stores take, where `stores` does not say: a number, or measured
  every: 1h                           # how often a table is looked at on which much expires
  orphans: 7d                         # how often its folders are searched
  at-once: 4                          # tables worked on side by side
  tables: [lake.*, /data/repository]  # names, patterns and locations; else every table of every catalog
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from firnline.errors import PolicyError, UsageError
from firnline.model.times import DAY_MS, HOUR_MS, parse_duration
from firnline.policy.policy import Setting
from firnline.policy.values import OFF, parse_setting
from firnline.policy.worker.windows import Window, parse_window

_MOST_AT_ONCE = 256
_MOST_IOPS = 1_000_000
MEASURED, USUAL = "measured", "usual"
_SHORTEST_MS = 1_000
MARGIN_MS = 3_000
LAST_MS = 1_000
"""So long before a window closes work ends at its next batch, and nothing at all is read any more."""


@dataclass(frozen=True, slots=True)
class WorkerPolicy:
    """How a worker works. `orphans_ms`: None where folders are not searched."""

    window: Window | None = None
    budget: float = 0.2
    iops: int | str | None = None
    every_ms: int = HOUR_MS
    orphans_ms: int | None = 7 * DAY_MS
    at_once: int = 4
    tables: tuple[str, ...] = ()

    def opens_ms(self, now_ms: int, margin_ms: int = MARGIN_MS) -> int:
        """Returns from when on there may be work: the present moment where there may be now. Shortly before a window
        closes nothing new is begun, so that what is under way ends inside.
        """
        if self.window is None:
            return now_ms
        closes = self.window.closes_ms(now_ms)
        if closes is None:
            return self.window.opens_ms(now_ms)
        return now_ms if now_ms < closes - margin_ms else self.window.opens_ms(closes)


def _every(text: str) -> int:
    found = parse_duration(text)
    if found < _SHORTEST_MS:
        raise PolicyError(f"{text[:64]!r} is less than a second")
    return found


def _orphans(text: str) -> int | None:
    return None if text == OFF else _every(text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= _MOST_AT_ONCE):
        raise PolicyError(f"{text[:64]!r} is not a number from 1 to {_MOST_AT_ONCE}")
    return int(text)


def _iops(text: str) -> int | str | None:
    """Returns how many reads a second stores take; None for what is usual."""
    if text in (MEASURED, USUAL):
        return MEASURED if text == MEASURED else None
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= _MOST_IOPS):
        raise PolicyError(f"{text[:64]!r} is not a number of requests")
    return int(text)


def _tables(text: str | list[str]) -> tuple[str, ...]:
    named = tuple([text] if isinstance(text, str) else text)
    if not named or not all(map(str.strip, named)):
        raise PolicyError("a name of a table must not be empty")
    return named


def _budget(text: str) -> float:
    share: float = parse_setting("blast-radius", text, "budget")
    return share


WORKER_KEYS: Mapping[str, tuple[str, Callable[[Any], Any], str]] = {
    "window": ("window", parse_window, "hours with a time zone, such as 22:00-06:00 Europe/Berlin, or always"),
    "budget": ("budget", _budget, "a share above 0% and up to 100%"),
    "iops": ("iops", _iops, f"a number up to {_MOST_IOPS:,}, measured, or usual"),
    "every": ("every_ms", _every, "a duration such as 1h"),
    "orphans": ("orphans_ms", _orphans, "a duration such as 7d, or off"),
    "tables": ("tables", _tables, "a list of tables, patterns such as lake.sales.*, or locations"),
    "at-once": ("at_once", _count, f"a number from 1 to {_MOST_AT_ONCE}"),
}
"""The keys of the worker: the field that each is, its parser, and what it takes."""


def parse_of_worker(key: str, text: str | list[str], where: str) -> Any:
    """Returns what a key of the worker says. Raises PolicyError with `where` it stands."""
    _, parse, allowed = WORKER_KEYS[key]
    if not isinstance(text, str) and key != "tables":
        raise PolicyError(f"{where}: a list is not allowed here", hint=f"{key} takes {allowed}")
    try:
        return parse(text)
    except UsageError as error:
        raise PolicyError(f"{where}: {error.message}", hint=f"{key} takes {allowed}") from None


def worker_policy(said: Mapping[str, Setting[Any]]) -> WorkerPolicy:
    """Returns how the worker works by what a file says of it."""
    return WorkerPolicy(**{WORKER_KEYS[key][0]: setting.value for key, setting in said.items()})
