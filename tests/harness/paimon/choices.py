"""What a random history chooses from: the tables that can do a thing, branches, and rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from harness.paimon import layout
from harness.paimon.gateway import Jvm
from harness.paimon.java_table import JavaTable
from harness.paimon.python_table import PythonTable
from harness.paimon.shapes import AWKWARD, COLUMNS, MAIN, Row, Shape


class Choices:
    """Draws for one table, all from one source of chance. `done` counts the steps that were taken."""

    def __init__(
        self, jvm: Jvm, tables: list[JavaTable | PythonTable], shape: Shape, rng: random.Random, first: int = 1
    ) -> None:
        """`first` is the number of the first name that it gives: a history that goes on takes none again."""
        self.done: Counter[str] = Counter()
        self._jvm = jvm
        self._tables = tables
        self._shape = shape
        self._rng = rng
        self._number = count(first)
        self._values = {name: self._some(name) for name in shape.partitions}

    @property
    def folder(self) -> Path:
        return self._tables[0].folder

    def _able(self, verb: str) -> Any:
        """A table that has this verb, drawn among those that have; None where none has."""
        found = [each for each in self._tables if hasattr(each, verb)]
        return self._rng.choice(found) if found else None

    def _do(self, verb: str, *arguments: Any) -> bool:
        table = self._able(verb)
        if table is None or arguments[0] is None:
            return False
        call: Callable[..., None] = getattr(table, verb)
        call(*arguments)
        return True

    def _branch(self) -> str:
        names = layout.branches(self.folder)
        return self._rng.choice(names) if self._rng.random() < 0.4 else MAIN

    def _written(self) -> str | None:
        """A branch that has a snapshot."""
        branch = self._branch()
        return branch if layout.snapshots(self.folder, branch) else None

    def _some(self, name: str) -> tuple[Any, ...]:
        known = [*AWKWARD[name]] if self._shape.keyed else [*AWKWARD[name], None]
        return tuple(self._rng.sample(known, 2))

    def _rows(self) -> list[Row]:
        text = f"v{next(self._number)}"
        return [self._row(text) for _ in range(self._rng.randint(1, 4))]

    def _row(self, text: str) -> Row:
        fixed = {"k": self._rng.randint(0, 7), "v": text, "p": "a", "d": 1, "n": 1, "y": None, "t": 0}
        drawn = {name: self._rng.choice(values) for name, values in self._values.items()}
        return tuple({**fixed, **drawn}[name] for name in COLUMNS)
