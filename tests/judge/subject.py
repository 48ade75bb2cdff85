"""The table that a random history grows on, and random picks among what it holds."""

from __future__ import annotations

import random
from typing import Any

from .jvm import Jvm
from .materials import Material, Materials
from .reading import Reading

State = dict[str, Any]


class Subject:
    """One table, its files, and the state that Java last committed."""

    def __init__(self, jvm: Jvm, rng: random.Random, table: Any, materials: Materials) -> None:
        self._jvm = jvm
        self._rng = rng
        self._table = table
        self._materials = materials
        self._reading = Reading(jvm, table)
        self._staged: list[int] = []
        self._names = 0

    def state(self) -> State:
        """The table's current metadata, as Java writes it."""
        return self._jvm.document(self._table.operations().current())

    def version(self) -> int:
        return int(self._table.operations().current().formatVersion())

    def _ids(self, state: State) -> list[int]:
        return [snapshot["snapshot-id"] for snapshot in state["snapshots"]]

    def _heads(self, state: State, kind: str) -> dict[str, int]:
        refs = state.get("refs", {}).items()
        return {name: ref["snapshot-id"] for name, ref in sorted(refs) if ref["type"] == kind}

    def _ancestors(self, state: State, head: int) -> list[int]:
        parents = {snapshot["snapshot-id"]: snapshot.get("parent-snapshot-id") for snapshot in state["snapshots"]}
        line = []
        at: int | None = head
        while at is not None and at in parents:
            line.append(at)
            at = parents[at]
        return line

    def _branch(self, state: State) -> tuple[str, int]:
        """A branch to commit to, most often main, and its head."""
        branches = self._heads(state, "branch")
        name = "main" if self._rng.random() < 0.6 else self._rng.choice(list(branches))
        return name, branches[name]

    def _some(self, items: list[Any], most: int) -> list[Any]:
        return self._rng.sample(items, min(len(items), self._rng.randint(1, most)))

    def _live(self, head: int, most: int) -> list[Material]:
        live = [self._materials.data[path] for path in self._reading.data_files(head)]
        return self._some(live, most) if live else []

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}-{self._names}"

    def _append(self, update: Any, most: int = 4) -> Any:
        for _ in range(self._rng.randint(1, most)):
            update = update.appendFile(self._materials.data_file().java)
        return update
