"""What a look at the surroundings found, one line each and never a secret; the versions of programs and packages among
it.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from firnline.foreign import HIDDEN, concealed, passwords_in
from firnline.version import VERSION

_TELLING = re.compile(r"secret|password|passwd|token|credential|key|sas|signature|auth", re.IGNORECASE)
_OPEN = re.compile(r"(?:[.-]|^)(?:type|uri|url|endpoint|region|server|scope|style|impl|alias|enabled)$", re.IGNORECASE)
_SHORTEST = 4
"""Anything shorter would hide letters of ordinary words."""


class Severity(StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; a hint says what to do about it."""

    level: Severity
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
        return all(each.level is not Severity.PROBLEM for each in self.findings)

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


PACKAGES = ("pyarrow", "numba", "pyspark", "pyiceberg", "obstore", "boto3", "sqlalchemy", "redis")
_OLDEST_JAVA = 17
_ONLY_SPARK = "only the spark engine needs it; every other command works"
_JAVA_VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?([0-9]+)([^"]*)"', re.MULTILINE)


def versions() -> Iterator[Finding]:
    """Yields the versions of what firnline runs on."""
    yield Finding(Severity.OK, "versions", f"firnline {VERSION}, Python {platform.python_version()}")
    found = {name: _version(name) for name in PACKAGES}
    yield Finding(Severity.OK, "versions", ", ".join(f"{name} {number}" for name, number in found.items() if number))
    for name, number in found.items():
        if not number:
            yield Finding(Severity.PROBLEM, "versions", f"the package {name} is missing", f"pip install {name}")
    yield java()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def java() -> Finding:
    """Returns which Java Spark would run on, by the file beside its program: no JVM is started for it."""
    program = _java_program()
    if program is None:
        return Finding(Severity.WARNING, "java", "there is no Java", f"install Java {_OLDEST_JAVA}; {_ONLY_SPARK}")
    release = program.resolve().parent.parent / "release"
    said = _JAVA_VERSION.search(release.read_text(errors="replace")) if release.is_file() else None
    if said is None:
        return Finding(Severity.WARNING, "java", f"{program} does not tell its version", _ONLY_SPARK)
    if int(said[1]) < _OLDEST_JAVA:
        hint = f"Spark 4 needs Java {_OLDEST_JAVA} or newer: set JAVA_HOME; {_ONLY_SPARK}"
        return Finding(Severity.WARNING, "java", f"Java {said[1]}{said[2]} at {program} is too old", hint)
    return Finding(Severity.OK, "java", f"Java {said[1]}{said[2]} at {program}")


def _java_program() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    return Path(found) if found else None
