"""Holds, and what would be written for other engines, as a person reads them: the command and `print` show the same."""

from __future__ import annotations

from collections.abc import Sequence

from firnline.model.holds import Hold
from firnline.model.times import tell_instant
from firnline.ops.marks.adopt import Adoption
from firnline.plans.pages import Grid, Line, Page


def holds_page(holds: Sequence[Hold]) -> Page:
    """Returns each hold: on what, by whom, why, until when; and what of one cannot be read."""
    rows = tuple(map(_hold_row, holds))
    grid = Grid(rows, ("hold", "on", "by", "why", "until")) if rows else Line("no holds")
    damaged = (Line(f"{each.name or repr(each.name)} cannot be read: {each.damage}") for each in holds if each.damage)
    return Page((grid, *damaged))


def until_told(hold: Hold) -> str:
    return "it is released" if hold.until_ms is None else tell_instant(hold.until_ms)


def _hold_row(hold: Hold) -> tuple[str, ...]:
    if hold.damage:
        return (hold.name, "unknown: whole table", "unknown", "cannot be read", until_told(hold))
    return (hold.name, hold.snapshot or "whole table", hold.who, hold.why, until_told(hold))


def adoption_page(adoptions: Sequence[Adoption], verb: str) -> Page:
    """Returns each value as it is and as the policy needs it; `verb` says whether it was written."""
    if not adoptions:
        return Page((Line("nothing to write: the table's own retention already reaches as far as the policy"),))
    rows = tuple((each.what, each.before, each.after) for each in adoptions)
    return Page((Grid(rows, (verb, "before", "after")),))
