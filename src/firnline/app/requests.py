"""What a caller asks for, in texts and options, read into the values that use cases work with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from firnline.app.moments import (
    Age,
    Cutoff,
    KeepRules,
    Moment,
    cutoff_age_ms,
    cutoff_ms,
    duration_ms,
    instant,
    rule_texts,
)
from firnline.app.runs import Leave
from firnline.errors import UsageError
from firnline.plans.request import Request

if TYPE_CHECKING:
    from firnline.app.searches import SearchTerms
    from firnline.ops.orphans.rules import SearchRequest
    from firnline.plans.orphans import OrphanPlan


class RunOptions(TypedDict, total=False):
    """What a run may be asked for, as `request_of` takes it."""

    older_than: Cutoff | None
    retain_last: int | None
    now: Moment | None
    keep: KeepRules | None
    include_outside: bool | None
    blast_radius: float | None
    clean: bool
    new_history: bool
    sole_writer: bool
    grace: Age | None
    at_most: float | None


class TermOptions(TypedDict, total=False):
    """On what terms a search becomes a run, as `terms_of` takes it."""

    grace: Age | None
    blast_radius: float | None
    dry_run: bool
    consent: Callable[[OrphanPlan], bool]
    break_lease: bool
    include_outside: bool
    inventory: str | Path | None
    files: str | Path | None


class SearchOptions(TermOptions, total=False):
    """What a search may be asked for, as `search_of` and `terms_of` take it."""

    older_than: Cutoff | None
    same: tuple[tuple[str, str], ...]
    dead: frozenset[str]
    also: tuple[str, ...]
    keep_near_misses: bool


def request_of(
    older_than: Cutoff | None = None,
    retain_last: int | None = None,
    now: Moment | None = None,
    keep: KeepRules | None = None,
    include_outside: bool | None = None,
    blast_radius: float | None = None,
    clean: bool = False,
    new_history: bool = False,
    sole_writer: bool = False,
    grace: Age | None = None,
    at_most: float | None = None,
) -> Request:
    """Returns the options of a run as a value. Raises UsageError for an instant or an age that cannot be read."""
    at_ms = instant(now)
    if at_most is not None and not 0 < at_most <= 1:
        raise UsageError(f"at most {at_most!r} of a table is no share", hint="write 0.5 for a half")
    _refuse_no_share(blast_radius)
    return Request(
        keep=rule_texts(keep),
        older_than_ms=cutoff_ms(older_than, now),
        age_ms=cutoff_age_ms(older_than),
        retain_last=retain_last,
        now_ms=at_ms,
        include_outside=include_outside,
        blast_radius=blast_radius,
        clean=clean,
        new_history=new_history,
        sole_writer=sole_writer,
        grace_ms=None if grace is None else duration_ms(grace),
        at_most=at_most,
    )


def search_of(
    older_than: Cutoff | None = None,
    same: tuple[tuple[str, str], ...] = (),
    dead: frozenset[str] = frozenset(),
    also: tuple[str, ...] = (),
    keep_near_misses: bool = False,
) -> SearchRequest:
    """Returns what a search is asked for. `also` are tables that no catalog has."""
    from firnline.ops.orphans.rules import SearchRequest

    return SearchRequest(cutoff_ms(older_than), same, dead, also, keep_near_misses)


def terms_of(
    grace: Age | None = None,
    blast_radius: float | None = None,
    dry_run: bool = False,
    consent: Callable[[OrphanPlan], bool] = lambda plan: False,
    break_lease: bool = False,
    include_outside: bool = False,
    inventory: str | Path | None = None,
    files: str | Path | None = None,
) -> SearchTerms:
    """Returns on what terms a search becomes a run. `consent` is shown the plan; without it the plan waits."""
    from firnline.app.searches import SearchTerms

    _refuse_no_share(blast_radius)
    leave = Leave(break_lease, include_outside or None)
    grace_ms = None if grace is None else duration_ms(grace)
    return SearchTerms(grace_ms, blast_radius, dry_run, consent, leave, inventory, files)


def asked_search(asked: SearchOptions) -> tuple[SearchRequest, SearchTerms]:
    """Returns what a search is asked for, and on what terms."""
    of_terms: dict[str, Any] = dict(asked)
    of_search = {name: of_terms.pop(name) for name in _OF_SEARCH & of_terms.keys()}
    return search_of(**of_search), terms_of(**of_terms)


_OF_SEARCH = SearchOptions.__annotations__.keys() - TermOptions.__annotations__.keys()


def age_ms(retain: Age | int | None) -> int | None:
    """Returns for how long something is kept: an age such as 30d, or "forever"; None leaves it to the table."""
    from firnline.ops.marks.tags import FOREVER

    if isinstance(retain, str) and retain.lower() == "forever":
        return FOREVER
    return retain if retain is None or isinstance(retain, int) else duration_ms(retain)


def _refuse_no_share(blast_radius: float | None) -> None:
    """Raises UsageError for a cap that is no share of one: 50 for 50 % would be no cap at all."""
    if blast_radius is not None and not 0 <= blast_radius <= 1:
        raise UsageError(f"a blast radius of {blast_radius!r} is no share of a table", hint="write 0.5 for a half")
