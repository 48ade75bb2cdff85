"""Errors that travel as rows: an executor says what went wrong instead of failing its task.

Spark would only try again and then bury the reason.
"""

from __future__ import annotations

import json

from firnline import errors
from firnline.errors import FirnlineError


def told(problem: FirnlineError) -> str:
    """Returns the error as text. Its class is the nearest one in the tree that everybody knows; adapters have finer."""
    known = next(each.__name__ for each in type(problem).__mro__ if each.__module__ == FirnlineError.__module__)
    return json.dumps([known, problem.message, problem.hint])


def raise_told(said: str | None) -> None:
    """Raises the error that an executor told; returns where it told none."""
    if said:
        kind, message, hint = json.loads(said)
        raise getattr(errors, kind)(message, hint)
