"""What somebody wrote, level by level, before anything is inherited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from firnline.policy.policy import Setting
from firnline.policy.rules import Rule


@dataclass(frozen=True, slots=True)
class Section:
    """One level: its rules (None: turned off here), its other settings and the levels inside it by name.

    The whole of a firnline.yaml is one section; catalogs, namespaces and tables are inside each other. `at` is the
    file and line of its name.
    """

    keep: Mapping[str, Setting[Rule | None]] = field(default_factory=dict)
    settings: Mapping[str, Setting[Any]] = field(default_factory=dict)
    inside: Mapping[str, Section] = field(default_factory=dict)
    at: str = field(default="", compare=False)


def written_values(section: Section, setting: str) -> Iterator[Any]:
    """Yields what a setting is at any level of the file."""
    if setting in section.settings:
        yield section.settings[setting].value
    for inner in section.inside.values():
        yield from written_values(inner, setting)
