"""Consumers: what each reads next, and until when it counts.

Paimon goes by when a consumer's file was last written (`written.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firnline.formats.paimon import fields, names
from firnline.formats.paimon.branches import Branch

EXPIRATION = "consumer.expiration-time"


@dataclass(frozen=True, slots=True)
class Consumer:
    """One consumer. `until_ms`: None where it counts for as long as its file is there."""

    following: int
    until_ms: int | None
    longest_ms: int | None

    def in_force(self, now_ms: int) -> bool:
        return self.until_ms is None or now_ms <= self.until_ms


def consumers_of(branch: Branch, modified: Mapping[str, int]) -> dict[str, Consumer]:
    """Returns the branch's consumers. One of unknown age counts for ever."""
    text, where = branch.schema.options.get(EXPIRATION), branch.schema.where
    longest = None if text is None else fields.duration_ms(text, EXPIRATION, where)
    found: dict[str, Consumer] = {}
    for name, following in branch.consumers.items():
        written = modified.get(names.consumer_file(branch.name, name))
        ends = None if longest is None or written is None else written + longest
        found[name] = Consumer(following, ends, longest)
    return found
