"""The side-by-side count that a test session prints at its end, gathered from every worker's reports."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .verdict import Verdict

PROPERTY = "judge"
LINES = {
    "worlds": "worlds",
    "questions": "questions asked (a world, a cut-off, a count)",
    "same": "same verdict",
    "expiring": "questions that expire something",
    "incremental": "Java chose incremental cleanup",
    "lost": "  and it deletes live files in",
    "left": "  and it leaves garbage in",
}


def counts(verdict: Verdict, *, same: bool) -> dict[str, int]:
    """One question's share of the count."""
    incremental = verdict.unforced.incremental and bool(verdict.expired)
    return {
        "questions": 1,
        "same": int(same),
        "expiring": int(bool(verdict.expired)),
        "incremental": int(incremental),
        "lost": int(incremental and bool(verdict.lost)),
        "left": int(incremental and bool(verdict.left)),
    }


def write(reporter: Any) -> None:
    """Print the totals of all reports; nothing if no test of the judge ran."""
    total: Counter[str] = Counter()
    for report in [report for reports in reporter.stats.values() for report in reports]:
        for name, value in getattr(report, "user_properties", []):
            if name == PROPERTY and report.when == "call":
                total.update(value)
    if total:
        reporter.section("firnline and Iceberg, side by side")
        for key, label in LINES.items():
            reporter.write_line(f"{total[key]:6}  {label}")
