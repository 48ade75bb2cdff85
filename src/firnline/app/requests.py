"""What a caller asks for, in texts and options, read into the values that use cases work with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar

from firnline.app.moments import (
    Age,
    Cutoff,
    KeepRules,
    Moment,
    checked_rules,
    cutoff_age_ms,
    cutoff_ms,
    duration_ms,
    instant,
)
from firnline.app.naming import texts_meant
from firnline.app.runs import Leave
from firnline.errors import PolicyError, UsageError
from firnline.plans.request import Request

if TYPE_CHECKING:
    from firnline.app.searches import SearchTerms
    from firnline.ops.orphans.rules import SearchRequest
    from firnline.plans.orphans import OrphanPlan

P = ParamSpec("P")
R = TypeVar("R")
Share = float | str
"""A share of a table: 0.5, or a text such as 50%."""


class RunOptions(TypedDict, total=False):
    """What a run may be asked for, as `request_of` takes it."""

    older_than: Cutoff | None
    retain_last: int | None
    now: Moment | None
    keep: KeepRules | None
    include_outside: bool | None
    blast_radius: Share | None
    clean: bool
    new_history: bool
    sole_writer: bool
    grace: Age | None
    at_most: Share | None


class TermOptions(TypedDict, total=False):
    """On what terms a search becomes a run, as `terms_of` takes it."""

    grace: Age | None
    blast_radius: Share | None
    dry_run: bool
    consent: Callable[[OrphanPlan], bool]
    break_lease: bool
    include_outside: bool
    inventory: str | Path | None
    files: str | Path | None


class SearchOptions(TermOptions, total=False):
    """What a search may be asked for, as `search_of` and `terms_of` take it."""

    older_than: Cutoff | None
    same: Iterable[tuple[str, str]]
    dead: Iterable[str]
    also: Iterable[str]
    keep_near_misses: bool


def request_of(
    older_than: Cutoff | None = None,
    retain_last: int | None = None,
    now: Moment | None = None,
    keep: KeepRules | None = None,
    include_outside: bool | None = None,
    blast_radius: Share | None = None,
    clean: bool = False,
    new_history: bool = False,
    sole_writer: bool = False,
    grace: Age | None = None,
    at_most: Share | None = None,
) -> Request:
    """Returns the options of a run as a value. Raises UsageError for an instant or an age that cannot be read."""
    at_ms = instant(now)
    most = share_meant("at_most", at_most)
    if most == 0:
        raise UsageError("at most 0% of a table is no share: nothing could go", hint=_SHARE_HINT)
    return Request(
        keep=checked_rules(keep),
        older_than_ms=cutoff_ms(older_than, now),
        age_ms=cutoff_age_ms(older_than),
        retain_last=retain_last,
        now_ms=at_ms,
        include_outside=include_outside,
        blast_radius=share_meant("blast_radius", blast_radius),
        clean=clean,
        new_history=new_history,
        sole_writer=sole_writer,
        grace_ms=None if grace is None else duration_ms(grace),
        at_most=most,
    )


def search_of(
    older_than: Cutoff | None = None,
    same: Iterable[tuple[str, str]] = (),
    dead: Iterable[str] = (),
    also: Iterable[str] = (),
    keep_near_misses: bool = False,
) -> SearchRequest:
    """Returns what a search is asked for. `also` are tables that no catalog has. Raises UsageError for what is no list
    of names, or of pairs.
    """
    from firnline.ops.orphans.rules import SearchRequest

    gone, beside = frozenset(texts_meant("dead", dead)), texts_meant("also", also)
    return SearchRequest(cutoff_ms(older_than), _pairs(same), gone, beside, keep_near_misses)


def _pairs(same: object) -> tuple[tuple[str, str], ...]:
    """Returns pairs of places that are one."""
    found = tuple(same) if isinstance(same, Iterable) and not isinstance(same, str | Mapping) else (None,)
    if all(isinstance(each, tuple | list) and len(each) == 2 and set(map(type, each)) == {str} for each in found):
        return tuple((one, other) for one, other in found)
    raise UsageError(f"same: {same!r:.64} is no list of pairs", hint='same=[("s3://old-name", "s3://new-name")]')


def terms_of(
    grace: Age | None = None,
    blast_radius: Share | None = None,
    dry_run: bool = False,
    consent: Callable[[OrphanPlan], bool] = lambda plan: False,
    break_lease: bool = False,
    include_outside: bool = False,
    inventory: str | Path | None = None,
    files: str | Path | None = None,
) -> SearchTerms:
    """Returns on what terms a search becomes a run. `consent` is shown the plan; without it the plan waits."""
    from firnline.app.searches import SearchTerms

    cap = share_meant("blast_radius", blast_radius)
    leave = Leave(break_lease, include_outside or None)
    grace_ms = None if grace is None else duration_ms(grace)
    return SearchTerms(grace_ms, cap, dry_run, consent, leave, inventory, files)


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


_SHARE_HINT = 'write 0.5 or "50%" for a half'


def share_meant(name: str, share: object) -> float | None:
    """Returns a share of one. Raises UsageError for what is none: 50 for 50 % would be no bound at all."""
    if isinstance(share, str):
        return _share_of_text(name, share)
    if share is None:
        return None
    if isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1:
        return share
    raise UsageError(f"{name}: {share!r:.64} is no share of a table", hint=_SHARE_HINT)


def _share_of_text(name: str, text: str) -> float:
    """Returns a share that is read as in a policy file, where only `blast-radius` is one."""
    from firnline.policy.values import parse_setting

    try:
        return float(parse_setting("blast-radius", text, name))
    except PolicyError as problem:
        raise PolicyError(problem.message, hint=_SHARE_HINT) from None


def takes(options: type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Returns what makes a method refuse a keyword that it does not have, in its own name and with the nearest ones:
    Python itself would name a function within.
    """

    def of(method: Callable[P, R]) -> Callable[P, R]:
        own = getattr(method, "__kwdefaults__", None) or {}
        known = {*options.__annotations__, *own, *_arguments(method)}

        @wraps(method)
        def checked(*args: P.args, **asked: P.kwargs) -> R:
            for name in asked.keys() - known:
                near = get_close_matches(name, known, n=2)
                guess = f". Did you mean {' or '.join(map(repr, near))}?" if near else ""
                raise TypeError(f"{method.__name__}() got an unexpected keyword argument {name!r}{guess}")
            return method(*args, **asked)

        return checked

    return of


def _arguments(method: Callable[..., Any]) -> tuple[str, ...]:
    code = method.__code__
    return code.co_varnames[: code.co_argcount]
