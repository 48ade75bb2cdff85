"""A policy as a value: rules, each with the place where it was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from firnline.policy.native import NativeRetention
from firnline.policy.rules import KeepTags, Rule

T_co = TypeVar("T_co", covariant=True)


class Level(StrEnum):
    """How specific a source is, least first."""

    DEFAULT = "default"
    GLOBAL = "global"
    CATALOG = "catalog"
    NAMESPACE = "namespace"
    PROPERTY = "table property"
    TABLE = "table"
    ASKED = "asked"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value was written: a level, the name it has there and, for a file, path and line."""

    level: Level
    name: str = ""
    path: str = ""
    line: int = 0

    def __str__(self) -> str:
        if self.level in (Level.ASKED, Level.DEFAULT):
            return self.level.value
        place = f"{self.level} {self.name}".rstrip()
        return f"{self.path}:{self.line}, {place}" if self.path else place


@dataclass(frozen=True, slots=True)
class Setting(Generic[T_co]):
    """A value, its source and the less specific setting that it replaced."""

    value: T_co
    source: Source
    overrides: Setting[T_co] | None = None

    def overridden(self) -> Iterator[Setting[T_co]]:
        """Yields what this setting replaced, most specific first."""
        before = self.overrides
        while before is not None:
            yield before
            before = before.overrides


@dataclass(frozen=True, slots=True)
class Policy:
    """What to keep. Without a single rule the table's own retention counts and nothing else."""

    rules: tuple[Setting[Rule], ...] = ()

    @property
    def is_native(self) -> bool:
        return not self.rules

    @property
    def tag_patterns(self) -> tuple[str, ...]:
        """Returns the patterns of all rules on tags, each once and sorted."""
        rules = (setting.value for setting in self.rules)
        return tuple(sorted({p for rule in rules if isinstance(rule, KeepTags) for p in rule.patterns}))

    def describe(self, native: NativeRetention | None = None) -> str:
        """Returns the policy in English, each rule with its source."""
        if self.is_native:
            detail = f": {native.describe()}" if native else ""
            told = "the table's own retention" if native is None or native.is_written else "no rule is written"
            return told + detail
        return "keep " + ", ".join(f"{setting.value} ({setting.source})" for setting in self.rules)
