"""What a look at the surroundings found, one line each and never a secret; the versions of programs and packages among
it.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Any

from firnline.extras import EXTRAS, how_to_get
from firnline.foreign import Veil
from firnline.plans.pages import counted
from firnline.version import VERSION


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
    """All that was found. `blind`: there was neither a catalog nor a table to look at."""

    findings: tuple[Finding, ...]
    blind: bool = False

    @property
    def is_well(self) -> bool:
        return all(each.level is not Severity.PROBLEM for each in self.findings)

    @property
    def verdict(self) -> str:
        """Returns what all of it comes to."""
        problems = sum(each.level is Severity.PROBLEM for each in self.findings)
        if problems:
            return counted(problems, "problem")
        return "no catalog is configured: nothing else could be looked at" if self.blind else "no problem was found"

    def to_json(self) -> dict[str, Any]:
        return {"well": self.is_well, "findings": [each.to_json() for each in self.findings]}

    def __str__(self) -> str:
        from firnline.ops.looking.pages import doctor_page

        return doctor_page(self).to_text()

    def _repr_html_(self) -> str:
        from firnline.ops.html.doctor import doctor_html

        return doctor_html(self)


def veiled(found: Finding, veil: Veil) -> Finding:
    """Returns a finding without any secret that libraries and servers may have quoted in it."""
    return replace(found, topic=veil.over(found.topic), said=veil.over(found.said), hint=veil.over(found.hint))


PACKAGES = ("pyarrow", "pyiceberg", "obstore", "sqlalchemy")
USED_BY = {
    "spark": "Spark and SQL",
    "s3": "S3",
    "postgres": "PostgreSQL",
    "redis": "Redis",
    "fast": "quick reading of large metadata",
    "page": "the page of `firnline serve`",
}
"""Who needs the packages of each extra."""
_OLDEST_JAVA = 17
_ONLY_SPARK = "only the spark engine needs it; every other command works"
_JAVA_VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?([0-9]+)([^"]*)"', re.MULTILINE)


def versions() -> Iterator[Finding]:
    """Yields the versions of what firnline runs on."""
    yield Finding(Severity.OK, "versions", f"firnline {VERSION}, Python {platform.python_version()}")
    optional = {name: extra for extra, names in EXTRAS.items() for name in names}
    found = {name: _version(name) for name in (*PACKAGES, *optional)}
    yield Finding(Severity.OK, "versions", ", ".join(f"{name} {number}" for name, number in found.items() if number))
    for name in PACKAGES:
        if not found[name]:
            yield Finding(Severity.PROBLEM, "versions", f"the package {name} is missing", f"pip install {name}")
    for extra in dict.fromkeys(optional[name] for name in optional if not found[name]):
        yield Finding(Severity.OK, "versions", f"without what {USED_BY[extra]} needs", how_to_get(extra))
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
