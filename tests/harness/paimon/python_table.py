"""One table through pypaimon: it has no compaction, no expiry and no fast-forward of its own that is whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.paimon.environment import Pypaimon
from harness.paimon.shapes import COLUMNS, Row, Shape


class PythonTable:
    """A table in a folder; the methods are those of `JavaTable` that pypaimon has too."""

    def __init__(self, process: Pypaimon, folder: Path) -> None:
        self.folder = folder
        self._process = process

    def _ask(self, verb: str, **arguments: Any) -> Any:
        return self._process.ask(verb, folder=str(self.folder), **arguments)

    def create(self, shape: Shape) -> None:
        own = {"partitions": shape.partitions, "keys": shape.keys, "options": shape.options}
        self._ask("create", columns=COLUMNS, **own)

    def write(self, branch: str, rows: Sequence[Row], overwrite: Mapping[str, Any] | None = None) -> None:
        self._ask("write", branch=branch, rows=rows, overwrite=overwrite)

    def abandon(self, branch: str, rows: Sequence[Row]) -> None:
        self._ask("write", branch=branch, rows=rows, overwrite=None, commits=False)

    def truncate(self, branch: str) -> None:
        self._ask("truncate", branch=branch)

    def tag(self, branch: str, name: str, snapshot: int, ttl: str | None = None) -> None:
        self._ask("tag", branch=branch, name=name, snapshot=snapshot, ttl=ttl)

    def drop_tag(self, branch: str, name: str) -> None:
        self._ask("drop_tag", branch=branch, name=name)

    def create_branch(self, name: str, from_tag: str | None) -> None:
        self._ask("create_branch", name=name, from_tag=from_tag)

    def drop_branch(self, name: str) -> None:
        self._ask("drop_branch", name=name)

    def rollback(self, branch: str, target: int | str) -> None:
        self._ask("rollback", branch=branch, target=target)

    def consumer(self, branch: str, name: str, next_snapshot: int) -> None:
        self._ask("consumer", branch=branch, name=name, next_snapshot=next_snapshot)
