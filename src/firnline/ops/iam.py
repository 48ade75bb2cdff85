"""Which permissions a command needs on one table, or on any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firnline.errors import UsageError
from firnline.history.names import home_of, pointer_of
from firnline.model.locations import parse_location
from firnline.ops.settle import policy_in_force
from firnline.ops.workplace import Workplace
from firnline.plans.permissions import (
    ACTIONS,
    CATALOG_WORDS,
    Grant,
    Places,
    Uses,
    aws_policy,
    grants,
    template,
    uses_of,
)
from firnline.plans.request import Request

_SCHEMES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "abfs": "abfs", "abfss": "abfs", "az": "abfs"}


@dataclass(frozen=True, slots=True)
class Permissions:
    """The least that a command needs, and what helps it further."""

    command: str
    store: str
    uses: Uses
    needed: tuple[Grant, ...]
    helpful: tuple[Grant, ...]

    @property
    def catalog(self) -> str:
        return CATALOG_WORDS[self.uses.catalog]

    @property
    def policy(self) -> dict[str, Any] | None:
        """The AWS policy document; None where there is nothing to allow, or the store is another one."""
        return aws_policy(self.needed) if self.store == "s3" and self.needed else None

    def to_json(self) -> dict[str, Any]:
        return {
            "command": self.command,
            "store": self.store,
            "needed": [each.to_json() for each in self.needed],
            "helpful": [each.to_json() for each in self.helpful],
            "catalog": self.catalog,
            "policy": self.policy,
        }


def permissions(command: str, store: str, work: Workplace | None) -> Permissions:
    """Returns what the command needs: on this very table, or on a table that stands for any."""
    if store not in ACTIONS:
        raise UsageError(f"unknown store {store!r}", hint=f"one of: {', '.join(ACTIONS)}")
    uses = uses_of(command)
    places = template(store) if work is None else places_of(work)
    chosen = store if work is None else store_of(places)
    needed = tuple(grants(uses.needs, places, chosen))
    helpful = tuple(grants((each for each in uses.helps if each not in uses.needs), places, chosen))
    return Permissions(command, chosen, uses, needed, helpful)


def places_of(work: Workplace) -> Places:
    """Returns where this table's metadata, files and run records lie, from one read of it.

    A history lies in the table's own folder, wherever the runs are recorded: it counts where there is one or will be.
    """
    state = work.source.load()
    folders = tuple(folder.rstrip("/") for folder in state.owned)
    kept = policy_in_force(state, work.source.name, work.config, Request()).history.value
    remembers = pointer_of(state) is not None or kept is not None
    history = (home_of(state),) if remembers else ()
    return Places((state.fence.rpartition("/")[0],), folders, (work.root(state).rstrip("/"), *history))


def store_of(places: Places) -> str:
    """Returns the store that a table lies in. Raises UsageError for local files: those have owners, not policies."""
    scheme = parse_location(places.metadata[0]).scheme
    if scheme not in _SCHEMES:
        raise UsageError(
            f"the table lies in {scheme}://, which knows no such permissions",
            hint="the user who runs the command must own the table's folder; leave --table out to see an example",
        )
    return _SCHEMES[scheme]
