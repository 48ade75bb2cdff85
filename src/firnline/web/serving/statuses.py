"""Which status an answer has that says why something was not done."""

from __future__ import annotations

from firnline.errors import (
    FirnlineError,
    Interrupted,
    LeaseHeld,
    NoSuchTable,
    RefusedForSafety,
    TableMoved,
    UsageError,
)
from firnline.web.serving.gate import NotAllowed
from firnline.web.serving.waits import Busy

_STATUSES: tuple[tuple[type[FirnlineError], int], ...] = (
    (NoSuchTable, 404),
    (UsageError, 400),
    (LeaseHeld, 409),
    (TableMoved, 409),
    (RefusedForSafety, 409),
    (Interrupted, 503),
    (Busy, 503),
)
_UPSTREAM = 502


def status_of_problem(problem: FirnlineError) -> int:
    """Returns 4xx where the one who asked can do something, 502 where a store or a catalog did not answer."""
    if isinstance(problem, NotAllowed):
        return problem.status
    return next((status for kind, status in _STATUSES if isinstance(problem, kind)), _UPSTREAM)


def headers_of_problem(problem: Exception) -> dict[str, str]:
    """Returns when a request may come again, where that is known."""
    retry_s = problem.retry_s if isinstance(problem, (NotAllowed, Busy)) else None
    return {} if retry_s is None else {"Retry-After": str(retry_s)}
