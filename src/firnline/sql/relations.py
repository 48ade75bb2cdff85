"""A relation: what a data source reads, cut into pieces; filters that Spark hands down tell which cannot hold a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual, Not

_TIME, _EXPIRED = ("committed_at",), ("expired",)


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """The times in which a snapshot can have been committed, both ends counted, and whether it expired."""

    first_ms: int | None = None
    last_ms: int | None = None
    expired: bool | None = None

    def meets(self, first_ms: int, last_ms: int) -> bool:
        """Tells whether something committed between these two instants can lie within."""
        return (self.first_ms is None or last_ms >= self.first_ms) and (
            self.last_ms is None or first_ms <= self.last_ms
        )


def bounds_of(filters: Iterable[Filter]) -> TimeBounds:
    """Returns the bounds that the filters, which all must hold, make; what is not understood bounds nothing."""
    bounds = TimeBounds()
    for each in filters:
        bounds = _narrowed(bounds, each)
    return bounds


def _narrowed(bounds: TimeBounds, each: Filter) -> TimeBounds:
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


def _since(bounds: TimeBounds, value: Any) -> TimeBounds:
    at = _milliseconds(value)
    known = [each for each in (bounds.first_ms, at) if each is not None]
    return replace(bounds, first_ms=max(known, default=None))


def _until(bounds: TimeBounds, value: Any) -> TimeBounds:
    """Rounded up: commits have whole milliseconds, an instant may lie between two."""
    at = _milliseconds(value)
    known = [each for each in (bounds.last_ms, None if at is None else at + 1) if each is not None]
    return replace(bounds, last_ms=min(known, default=None))


def _milliseconds(value: Any) -> int | None:
    """Returns an instant rounded down; one without a zone is in this machine's own, as PySpark hands it out."""
    if not isinstance(value, datetime):
        return None
    return int(value.astimezone(UTC).timestamp() * 1000)


Piece = Any
"""What one task reads: small and picklable; only its own relation looks inside."""


class Relation(Protocol):
    """Rows of one kind. Picklable: it travels to executors with the means to read its pieces."""

    @property
    def schema(self) -> pa.Schema: ...

    def pieces(self, bounds: TimeBounds) -> Sequence[Piece]:
        """Returns the pieces that may hold rows within the bounds; others are not even opened."""
        ...

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a piece, with these columns in this order."""
        ...


@dataclass(frozen=True, slots=True)
class Ready:
    """Rows that were read while planning, because there are few."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def pieces(self, bounds: TimeBounds) -> Sequence[Piece]:
        return [None]

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self.table.select(list(columns)).to_batches()
