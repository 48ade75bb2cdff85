"""The policy in force on a table: each value, where it was written, and what it replaced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from firnline.model.times import format_duration
from firnline.plans.pages import Grid, Line, Page, size
from firnline.policy.inherit import Effective
from firnline.policy.policy import Setting


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """What counts for a table; `words` say its rules in one line."""

    table: str
    words: str
    effective: Effective

    def to_json(self) -> dict[str, Any]:
        """Returns the contract of `policy show --json`."""
        settings = [_facts(*each) for each in _settings(self.effective)]
        return {"table": self.table, "native": self.effective.policy.is_native, "settings": settings}

    def page(self) -> Page:
        rows = tuple(_row(*each) for each in _settings(self.effective))
        grid = Grid(rows, ("setting", "value", "written in", "replaces"))
        return Page((Line(f"{self.table}: {self.words}"), grid))


def _settings(effective: Effective) -> Iterator[tuple[str, Setting[Any]]]:
    yield from ((f"keep {name}", setting) for name, setting in effective.keep.items())
    yield "grace", effective.grace
    yield "blast-radius", effective.blast_radius
    yield "approve-above", effective.approve_above
    yield "engine", effective.engine
    yield "include-outside", effective.include_outside
    yield "history", effective.history
    yield "records", effective.records
    yield "sharing", effective.sharing
    yield "shared-with", effective.shared_with
    yield "archive", effective.archive
    yield "pointers", effective.pointers
    yield "pointer-branches", effective.pointer_branches
    yield "pointer-links", effective.pointer_links
    yield "version-hint", effective.version_hint
    yield "readers", effective.readers
    yield "readers-max-age", effective.readers_max_age
    yield "readers-from", effective.readers_from


def _row(name: str, setting: Setting[Any]) -> tuple[str, ...]:
    before = ", ".join(f"{_said(name, each.value)} ({each.source})" for each in setting.overridden())
    return (name, _said(name, setting.value), str(setting.source), before)


def _facts(name: str, setting: Setting[Any]) -> dict[str, Any]:
    overrides = [{"value": _said(name, each.value), "source": str(each.source)} for each in setting.overridden()]
    return {"name": name, "value": _said(name, setting.value), "source": str(setting.source), "overrides": overrides}


def _said(name: str, value: Any) -> str:
    if value is None:
        return {"records": "in the table's folder", "readers-max-age": "forever"}.get(name, "off")
    if name in ("grace", "pointer-links", "readers-max-age"):
        return format_duration(value)
    if name in ("shared-with", "pointer-branches", "readers"):
        return ", ".join(value) or "none"
    if name == "approve-above":
        return size(value)
    return f"{value:.0%}" if name == "blast-radius" else str(value)
