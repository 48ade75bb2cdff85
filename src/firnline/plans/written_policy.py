"""A policy file as it is written, as a person reads it: the rules of each level."""

from __future__ import annotations

from collections.abc import Iterator

from firnline.plans.pages import Block, Grid, Hint, Line, Page
from firnline.policy.parse import Section


def written_page(section: Section) -> Page:
    """Returns the rules of each level, of a file without a fault."""
    levels = tuple(written_rules(section))
    if not levels:
        return Page((Line("no policy is written"), Hint("without one, the table's own retention counts")))
    blocks: tuple[Block, ...] = (Line("the policy is sound"), Grid(levels))
    return Page(blocks)


def written_rules(section: Section, path: str = "") -> Iterator[tuple[str, str]]:
    """Yields each level that has rules, outermost first."""
    rules = ", ".join(str(setting.value or f"{name} off") for name, setting in section.keep.items())
    if rules:
        yield path or "global", f"keep {rules}"
    for name, inner in section.inside.items():
        yield from written_rules(inner, f"{path}.{name}".lstrip("."))
