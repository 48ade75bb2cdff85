"""A search between its census and its run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from firnline.journal.layout import RunId
from firnline.journal.parts import Seals
from firnline.plans.orphans import OrphanPlan


@dataclass(frozen=True, slots=True)
class WrittenSearch:
    """A search whose list is written under the name of a run that does not exist yet: it becomes one of its own, or a
    part of an expiry. `scope` is what a purge must know of it.
    """

    run: RunId
    plan: OrphanPlan
    seals: Mapping[str, Seals]
    scope: Mapping[str, Any]


WriteSearch = Callable[[], WrittenSearch]
"""Writes the list of a search, and returns it so."""
