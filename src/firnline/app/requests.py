"""What a caller asks for, in texts and options, read into the values that use cases work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from firnline.app.places import now_ms
from firnline.app.runs import Leave
from firnline.app.searches import SearchTerms
from firnline.model.times import is_duration, parse_duration, parse_moment
from firnline.ops.marks.tags import FOREVER
from firnline.ops.orphans.rules import SearchRequest
from firnline.plans.orphans import OrphanPlan
from firnline.plans.request import Request

Moment = str | int
"""An instant: ISO 8601 with its zone, a date (its beginning in UTC), or milliseconds since the epoch."""


def request_of(
    older_than: Moment | None = None,
    retain_last: int | None = None,
    now: Moment | None = None,
    keep: Mapping[str, str | int] | None = None,
    include_outside: bool | None = None,
    blast_radius: float | None = None,
    clean: bool = False,
    new_history: bool = False,
    sole_writer: bool = False,
    grace: str | None = None,
    at_most: float | None = None,
) -> Request:
    """Returns the options of a run as a value. Raises UsageError for an instant or an age that cannot be read."""
    at_ms = instant(now)
    return Request(
        keep={name: str(value) for name, value in (keep or {}).items()},
        older_than_ms=cutoff(older_than, at_ms),
        retain_last=retain_last,
        now_ms=at_ms,
        include_outside=include_outside,
        blast_radius=blast_radius,
        clean=clean,
        new_history=new_history,
        sole_writer=sole_writer,
        grace_ms=None if grace is None else parse_duration(grace),
        at_most=at_most,
    )


def search_of(
    older_than: Moment | None = None,
    same: tuple[tuple[str, str], ...] = (),
    dead: frozenset[str] = frozenset(),
    also: tuple[str, ...] = (),
    keep_near_misses: bool = False,
) -> SearchRequest:
    """Returns what a search is asked for. `also` are tables that no catalog has."""
    return SearchRequest(cutoff(older_than), same, dead, also, keep_near_misses)


def terms_of(
    grace: str | None = None,
    blast_radius: float | None = None,
    dry_run: bool = False,
    consent: Callable[[OrphanPlan], bool] = lambda plan: False,
    break_lease: bool = False,
    include_outside: bool = False,
    inventory: str | Path | None = None,
    files: str | Path | None = None,
) -> SearchTerms:
    """Returns on what terms a search becomes a run. `consent` is shown the plan; without it the plan waits."""
    leave = Leave(break_lease, include_outside or None)
    grace_ms = None if grace is None else parse_duration(grace)
    return SearchTerms(grace_ms, blast_radius, dry_run, consent, leave, inventory, files)


def instant(moment: Moment | None) -> int | None:
    """Returns milliseconds since the epoch. Raises UsageError for a text that is no instant."""
    return moment if moment is None or isinstance(moment, int) else parse_moment(moment)


def cutoff(older_than: Moment | None, at_ms: int | None = None) -> int | None:
    """Returns the instant before which something is old: one that was named, or an age such as 7d, counted back from
    the given instant or from now. A run remembers the instant, so that resuming it later takes nothing more.
    """
    if isinstance(older_than, str) and is_duration(older_than):
        return (now_ms() if at_ms is None else at_ms) - parse_duration(older_than)
    return instant(older_than)


def age_ms(retain: str | int | None) -> int | None:
    """Returns for how long something is kept: an age such as 30d, or "forever"; None leaves it to the table."""
    if not isinstance(retain, str):
        return retain
    return FOREVER if retain.lower() == "forever" else parse_duration(retain)
