"""What lies where in a table's folder: snapshots, tags, changelogs and consumers of every branch. Plain listings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.paimon.shapes import MAIN

SNAPSHOT, TAG, CHANGELOG = "snapshot", "tag", "changelog"
_BRANCH = "branch-"


@dataclass(frozen=True, order=True)
class PaimonRoot:
    """A snapshot, tag or changelog of a branch. `name` is its number, or the tag's name."""

    branch: str
    kind: str
    name: str

    def path(self, folder: Path) -> Path:
        return branch_folder(folder, self.branch) / self.kind / f"{self.kind}-{self.name}"


def branch_folder(folder: Path, branch: str) -> Path:
    return folder if branch == MAIN else folder / "branch" / f"{_BRANCH}{branch}"


def branches(folder: Path) -> list[str]:
    """Returns all branches, the main one first."""
    found = _names(folder / "branch", _BRANCH)
    return [MAIN, *found]


def snapshots(folder: Path, branch: str) -> list[int]:
    return _numbers(folder, branch, SNAPSHOT)


def changelogs(folder: Path, branch: str) -> list[int]:
    return _numbers(folder, branch, CHANGELOG)


def tags(folder: Path, branch: str) -> list[str]:
    return _names(branch_folder(folder, branch) / TAG, "tag-")


def consumers(folder: Path, branch: str) -> dict[str, int]:
    """Returns the next snapshot of each consumer."""
    place = branch_folder(folder, branch) / "consumer"
    names = _names(place, "consumer-")
    return {name: int(document(place / f"consumer-{name}")["nextSnapshot"]) for name in names}


def options(folder: Path, branch: str) -> dict[str, str]:
    """Returns the options in the newest schema of a branch."""
    place = branch_folder(folder, branch) / "schema"
    newest = max(int(each) for each in _names(place, "schema-"))
    found: dict[str, str] = document(place / f"schema-{newest}")["options"]
    return found


def roots(folder: Path) -> Iterator[PaimonRoot]:
    """Yields every snapshot, tag and changelog that the folder holds, of every branch."""
    for branch in branches(folder):
        yield from (PaimonRoot(branch, SNAPSHOT, str(each)) for each in snapshots(folder, branch))
        yield from (PaimonRoot(branch, TAG, each) for each in tags(folder, branch))
        yield from (PaimonRoot(branch, CHANGELOG, str(each)) for each in changelogs(folder, branch))


def plain(address: str) -> str:
    """Returns the path in `file:///a`, `file:/a` or `/a`. Percent signs stay: Paimon's paths are not encoded."""
    return "/" + address.removeprefix("file:").lstrip("/") if address.startswith("file:") else address


def document(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(path.read_bytes())
    return read


def _numbers(folder: Path, branch: str, kind: str) -> list[int]:
    return sorted(int(each) for each in _names(branch_folder(folder, branch) / kind, f"{kind}-") if each.isdigit())


def _names(place: Path, prefix: str) -> list[str]:
    if not place.is_dir():
        return []
    return sorted(each.removeprefix(prefix) for each in os.listdir(place) if each.startswith(prefix))
