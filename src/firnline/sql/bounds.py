"""Filters that Spark hands down, as bounds that tell which pieces cannot hold a row. Spark filters again itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual, Not

_TIME, _EXPIRED = ("committed_at",), ("expired",)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The times in which a snapshot can have been committed, both ends counted, and whether it expired."""

    first_ms: int | None = None
    last_ms: int | None = None
    expired: bool | None = None

    def meets(self, first_ms: int, last_ms: int) -> bool:
        """Tells whether something committed between these two instants can lie within."""
        return (self.first_ms is None or last_ms >= self.first_ms) and (
            self.last_ms is None or first_ms <= self.last_ms
        )


def bounds_of(filters: Iterable[Filter]) -> Bounds:
    """Returns the bounds that the filters, which all must hold, make; what is not understood bounds nothing."""
    bounds = Bounds()
    for each in filters:
        bounds = _narrowed(bounds, each)
    return bounds


def _narrowed(bounds: Bounds, each: Filter) -> Bounds:
    match each:
        case EqualTo(attribute, bool(value)) if attribute == _EXPIRED:
            return replace(bounds, expired=value)
        case Not(EqualTo(attribute, bool(value))) if attribute == _EXPIRED:
            return replace(bounds, expired=not value)
        case EqualTo(attribute, value) if attribute == _TIME:
            return _until(_since(bounds, value), value)
        case GreaterThan(attribute, value) | GreaterThanOrEqual(attribute, value) if attribute == _TIME:
            return _since(bounds, value)
        case LessThan(attribute, value) | LessThanOrEqual(attribute, value) if attribute == _TIME:
            return _until(bounds, value)
    return bounds


def _since(bounds: Bounds, value: Any) -> Bounds:
    at = _milliseconds(value)
    known = [each for each in (bounds.first_ms, at) if each is not None]
    return replace(bounds, first_ms=max(known, default=None))


def _until(bounds: Bounds, value: Any) -> Bounds:
    """Rounded up: commits have whole milliseconds, an instant may lie between two."""
    at = _milliseconds(value)
    known = [each for each in (bounds.last_ms, None if at is None else at + 1) if each is not None]
    return replace(bounds, last_ms=min(known, default=None))


def _milliseconds(value: Any) -> int | None:
    """Returns an instant rounded down; one without a zone is in this machine's own, as PySpark hands it out."""
    if not isinstance(value, datetime):
        return None
    return int(value.astimezone(UTC).timestamp() * 1000)
