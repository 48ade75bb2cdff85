"""The rows of every snapshot, tag and branch, read in full, to be compared before and after."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.paimon import layout
from harness.paimon.environment import Pypaimon
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import CHANGELOG, TAG, PaimonRoot, plain
from harness.paimon.shapes import MAIN, Row

Rows = dict[PaimonRoot, tuple[Row, ...]]


def readable(folder: Path) -> list[PaimonRoot]:
    """Returns every snapshot and tag of every branch: what a person can read as a table."""
    return [root for root in layout.roots(folder) if root.kind != CHANGELOG]


def python_rows(process: Pypaimon, folder: Path, roots: Iterable[PaimonRoot] | None = None) -> Rows:
    """Returns what pypaimon reads. Raises PaimonError where a file is missing."""
    answers = _asked(process, "rows", folder, roots)
    return {root: _sorted(tuple(row) for row in rows) for root, rows in answers.items()}


def python_files(
    process: Pypaimon, folder: Path, roots: Iterable[PaimonRoot] | None = None
) -> dict[PaimonRoot, set[str]]:
    """Returns the paths of the data files and deletion vectors that pypaimon opens for each root."""
    answers = _asked(process, "files", folder, roots)
    return {root: {plain(path) for path in paths} for root, paths in answers.items()}


def _asked(process: Pypaimon, verb: str, folder: Path, roots: Iterable[PaimonRoot] | None) -> dict[PaimonRoot, Any]:
    asked = defaultdict(list)
    for root in readable(folder) if roots is None else roots:
        asked[root.branch].append(root)
    found: dict[PaimonRoot, Any] = {}
    for branch, several in asked.items():
        selectors = [_selector(root) for root in several]
        answers = process.ask(verb, folder=str(folder), branch=branch, selectors=selectors)
        found |= dict(zip(several, answers, strict=True))
    return found


def java_rows(table: JavaTable, roots: Iterable[PaimonRoot] | None = None) -> Rows:
    """Returns what Paimon's Java reads, without tags of branches: it looks for those among the main branch's.

    Raises Py4JJavaError where a file is missing.
    """
    asked = readable(table.folder) if roots is None else roots
    seen = [root for root in asked if root.branch == MAIN or root.kind != TAG]
    return {root: _sorted(table.rows.read(table.open(root.branch, _selector(root)))) for root in seen}


def _selector(root: PaimonRoot) -> dict[str, str]:
    return {"scan.tag-name" if root.kind == TAG else "scan.snapshot-id": root.name}


def _sorted(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=repr))
