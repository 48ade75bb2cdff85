"""What a server must check before it applies our updates: nothing that they rest on has changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from firnline.catalogs.rest.fences import next_fence
from firnline.catalogs.rest.updates import Document, Update, refs_of
from firnline.errors import RefusedForSafety

_OF_SCHEMAS = (
    ("assert-current-schema-id", "current-schema-id", "current-schema-id"),
    ("assert-last-assigned-field-id", "last-assigned-field-id", "last-column-id"),
    ("assert-default-spec-id", "default-spec-id", "default-spec-id"),
    ("assert-last-assigned-partition-id", "last-assigned-partition-id", "last-partition-id"),
)
"""Requirement, its field, and where a document says the same."""


def requirements_of(before: Document, updates: Sequence[Update]) -> list[dict[str, Any]]:
    """Returns the requirements: the same table, and every ref that we know, also those that go, as we read them.

    A ref that we do not know cannot be named here: that race is seen after the commit, see ops.built_on.
    """
    uuid = before.get("table-uuid")
    if not uuid:
        raise RefusedForSafety("the table has no uuid, so a server could not tell it from another", "upgrade the table")
    heads = {name: ref["snapshot-id"] for name, ref in refs_of(before).items()}
    absent = {name: None for name in (*_named(updates), next_fence(before)) if name not in heads}
    said: list[dict[str, Any]] = [{"type": "assert-table-uuid", "uuid": uuid}]
    said += [
        {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": head}
        for name, head in {**heads, **absent}.items()
    ]
    return [*said, *_of_schemas(before, updates)]


def _named(updates: Sequence[Update]) -> Iterator[str]:
    return (update["ref-name"] for update in updates if update["action"] == "set-snapshot-ref")


def _of_schemas(before: Document, updates: Sequence[Update]) -> Iterator[dict[str, Any]]:
    """Yields what keeps a schema or spec from being removed that somebody has just begun to use."""
    if any(update["action"] in ("remove-schemas", "remove-partition-specs") for update in updates):
        for kind, field, place in _OF_SCHEMAS:
            if before.get(place) is not None:
                yield {"type": kind, field: before[place]}
