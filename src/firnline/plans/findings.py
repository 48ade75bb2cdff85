"""What a look at the surroundings found, as values: one line each, and never a secret."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from firnline.foreign import HIDDEN, concealed, passwords_in

_TELLING = re.compile(r"secret|password|passwd|token|credential|key|sas|signature|auth", re.IGNORECASE)
_OPEN = re.compile(r"(?:[.-]|^)(?:type|uri|url|endpoint|region|server|scope|style|impl|alias|enabled)$", re.IGNORECASE)
_SHORTEST = 4
"""Anything shorter would hide letters of ordinary words."""


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; a hint says what to do about it."""

    level: Level
    topic: str
    said: str
    hint: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"level": self.level.value, "topic": self.topic, "said": self.said, "hint": self.hint}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    findings: tuple[Finding, ...]

    @property
    def is_well(self) -> bool:
        return all(each.level is not Level.PROBLEM for each in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {"well": self.is_well, "findings": [each.to_json() for each in self.findings]}


class Veil:
    """Hides secrets in texts: those that it was told of in any spelling, and passwords in addresses.

    Findings are worded without secrets; this is for what libraries and servers say in their errors.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spelled = {form for each in secrets if len(each) >= _SHORTEST for form in _spellings(each)}
        longest_first = sorted(spelled, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def over(self, text: str) -> str:
        hidden = concealed(text)
        return self._secrets.sub(HIDDEN, hidden) if self._secrets else hidden

    def over_finding(self, found: Finding) -> Finding:
        return replace(found, topic=self.over(found.topic), said=self.over(found.said), hint=self.over(found.hint))


def secrets_in(settings: Iterable[tuple[str, str]]) -> list[str]:
    """Returns the values that nobody should see: of telling names, and passwords inside addresses."""
    found = []
    for name, value in settings:
        if _TELLING.search(name) and not _OPEN.search(name):
            found.append(value)
            found += value.split(":") if "credential" in name.lower() else []
        found += passwords_in(value)
    return found


def _spellings(secret: str) -> set[str]:
    return {secret, quote(secret, safe=""), quote_plus(secret), unquote(secret), repr(secret)[1:-1]}
