"""What firnline and Iceberg said, side by side: counted here, printed at the end of the session."""

from __future__ import annotations

from .verdict import Verdict

PROPERTY = "count: firnline and Iceberg, side by side"


def counts(verdict: Verdict, *, same: bool) -> dict[str, int]:
    """One question's share of the count."""
    incremental = verdict.unforced.incremental and bool(verdict.expired)
    return {
        "questions asked (a world, a cut-off, a count)": 1,
        "same verdict": int(same),
        "questions that expire something": int(bool(verdict.expired)),
        "Java chose incremental cleanup": int(incremental),
        "Java's incremental cleanup deletes live files in": int(incremental and bool(verdict.lost)),
        "Java's incremental cleanup leaves garbage in": int(incremental and bool(verdict.left)),
    }
