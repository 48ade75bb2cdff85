"""What was asked for: the options of one run, kept in its record so that a resumed run decides by the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """The options that change what a run does. `now_ms` None means: the clock, read again at every decision.

    `sole_writer`: the operator's word that nobody else changes the table meanwhile. `drop`: refs that go, with all that
    only they hold; then nothing else does. `grace_ms`: how long it is from the command to the delete, in place of
    the policy's. `at_most`: the share of the table's files or bytes that may go at once; `oldest`: how many snapshots
    that came to. `age_ms`: the age by which `older_than_ms` was said; None where it was said as an instant.
    """

    keep: Mapping[str, str] = field(default_factory=dict)
    older_than_ms: int | None = None
    age_ms: int | None = None
    retain_last: int | None = None
    now_ms: int | None = None
    include_outside: bool | None = None
    blast_radius: float | None = None
    clean: bool = False
    new_history: bool = False
    sole_writer: bool = False
    drop: tuple[str, ...] = ()
    grace_ms: int | None = None
    at_most: float | None = None
    oldest: int | None = None

    def oldest_kept_ms(self, now_ms: int) -> int | None:
        """Returns the instant before which something is old. One that was said as an age lies at least that long before
        `now_ms`: the clock that it was counted back from may have been ahead of the one that counts.
        """
        if self.older_than_ms is None or self.age_ms is None:
            return self.older_than_ms
        return min(self.older_than_ms, now_ms - self.age_ms)

    def to_json(self) -> dict[str, Any]:
        return {
            "keep": dict(self.keep),
            "older_than_ms": self.older_than_ms,
            "age_ms": self.age_ms,
            "retain_last": self.retain_last,
            "now_ms": self.now_ms,
            "include_outside": self.include_outside,
            "blast_radius": self.blast_radius,
            "clean": self.clean,
            "new_history": self.new_history,
            "sole_writer": self.sole_writer,
            "drop": list(self.drop),
            "grace_ms": self.grace_ms,
            "at_most": self.at_most,
            "oldest": self.oldest,
        }

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> Request:
        """Returns the options as they were saved. Raises TypeError or ValueError for a name or a value that is none."""
        drop = fields.get("drop", [])
        strange = [name for name, kinds in _KINDS.items() if name in fields and type(fields[name]) not in kinds]
        texts = [*drop, *fields.get("keep", {}).values()] if not strange else []
        if strange or not all(isinstance(each, str) for each in texts):
            raise ValueError(f"the options are strange: {', '.join(strange) or 'keep or drop'}")
        return Request(**{**fields, "drop": tuple(drop)})


_NONE = type(None)
_KINDS: Mapping[str, tuple[type, ...]] = {
    "keep": (dict,),
    "older_than_ms": (int, _NONE),
    "age_ms": (int, _NONE),
    "retain_last": (int, _NONE),
    "now_ms": (int, _NONE),
    "include_outside": (bool, _NONE),
    "blast_radius": (int, float, _NONE),
    "clean": (bool,),
    "new_history": (bool,),
    "sole_writer": (bool,),
    "drop": (list,),
    "grace_ms": (int, _NONE),
    "at_most": (int, float, _NONE),
    "oldest": (int, _NONE),
}
"""What JSON makes of each option."""
