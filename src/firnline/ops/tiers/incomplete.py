"""Saying that a place does not have all that it is to have: then no table changes."""

from __future__ import annotations

from collections.abc import Iterable

from firnline.errors import ArchiveIncomplete
from firnline.ports.copying import CopyFate, CopyOutcome

_SHOWN = 3


def refuse_failed(outcomes: Iterable[CopyOutcome], to: str, what: str) -> None:
    """Raises ArchiveIncomplete where any copy failed."""
    failed = [each.error for each in outcomes if each.fate is CopyFate.FAILED]
    if failed:
        raise incomplete(to, f"{len(failed):,} files {what}: {first_of(failed)}")


def first_of(errors: list[str]) -> str:
    return "; ".join(errors[:_SHOWN])


def incomplete(to: str, why: str) -> ArchiveIncomplete:
    return ArchiveIncomplete(
        f"{to} does not have all of it: {why}; no table was changed",
        hint="`firnline resume` tries a run again, and copies only what is missing",
    )
