"""The store that is asked, or from which store to which; and at what pace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from firnline.patience import Patience
from firnline.stores.buckets import Buckets
from firnline.stores.copies.contents import Contents
from firnline.stores.copies.requests import PacedRequests
from firnline.stores.copies.targets import Targets
from firnline.stores.copies.uploads import S3Uploads
from firnline.stores.throttle import Throttle

COPY_PATIENCE = Patience(attempts=8, base_delay_s=0.1, max_delay_s=5.0, budget_s=60.0)


class OneStore:
    """What asks one store, by its settings in PyIceberg's names. A pickled one has a pace of its own: `share` it."""

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        throttle: Throttle | None = None,
        patience: Patience = COPY_PATIENCE,
    ) -> None:
        self._properties = dict(properties or {})
        self._throttle = throttle or Throttle()
        self._patience = patience
        self._requests = PacedRequests(Buckets(properties), self._throttle, patience)

    def __getstate__(self) -> dict[str, Any]:
        return {"properties": self._properties, "throttle": self._throttle, "patience": self._patience}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def share(self, parts: int) -> Self:
        return type(self)(self._properties, throttle=self._throttle.share(parts), patience=self._patience)


@dataclass(frozen=True)
class Route:
    """The settings of two stores, by PyIceberg's names, and the pace of each. Picklable; its pace is its own then."""

    source: Mapping[str, str]
    target: Mapping[str, str]
    storage_class: str | None
    source_throttle: Throttle
    target_throttle: Throttle
    patience: Patience

    def named(self) -> dict[str, Any]:
        """Returns all of it by name, as what copies along it is made with."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def share(self, parts: int) -> Route:
        """Returns the same for one of `parts` that work at once."""
        source, target = self.source_throttle.share(parts), self.target_throttle.share(parts)
        return replace(self, source_throttle=source, target_throttle=target)

    def sources(self) -> Contents:
        return Contents(PacedRequests(Buckets(self.source), self.source_throttle, self.patience))

    def targets(self) -> Targets:
        there = PacedRequests(Buckets(self.target), self.target_throttle, self.patience)
        return Targets(there, S3Uploads(there, self.storage_class))


def route(
    source: Mapping[str, str] | None,
    target: Mapping[str, str] | None,
    storage_class: str | None,
    throttles: tuple[Throttle | None, Throttle | None],
    patience: Patience,
) -> Route:
    """Returns a route; what is not given has no settings, and the pace that its store usually has."""
    from_there, to_there = (each or Throttle() for each in throttles)
    return Route(dict(source or {}), dict(target or {}), storage_class, from_there, to_there, patience)
