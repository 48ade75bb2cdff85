"""Random histories: what people do to a Paimon table, one step at a time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from firnline.testing.paimon import layout
from firnline.testing.paimon.environment import PaimonError
from firnline.testing.paimon.expiry import Retention, expire
from firnline.testing.paimon.gateway import Jvm
from firnline.testing.paimon.java_table import JavaTable
from firnline.testing.paimon.python_table import PythonTable
from firnline.testing.paimon.shapes import AWKWARD, COLUMNS, MAIN, Row, Shape

WEIGHTS = {
    "append": 12.0,
    "overwrite": 3,
    "delete": 3,
    "compact": 5,
    "compact_fully": 3,
    "merge_manifests": 1,
    "truncate": 0.5,
    "analyze": 1,
    "evolve": 1,
    "abandon": 1,
    "tag": 4,
    "tag_for_a_while": 2,
    "drop_tag": 1.5,
    "branch": 2,
    "empty_branch": 0.5,
    "drop_branch": 0.7,
    "fast_forward": 1,
    "rollback": 1.5,
    "rollback_to_tag": 1,
    "consume": 1,
    "expire": 4,
}
# TypeError: pypaimon trips over manifests without bucket ranges, which Java writes when it merges pypaimon's own.
# EndOfScanException: a compaction found nothing to do.
REFUSALS = (
    "IllegalArgumentException",
    "IllegalStateException",
    "UnsupportedOperationException",
    "EndOfScanException",
    "ValueError",
    "TypeError",
)
CONFLICT = "File deletion conflicts"  # what a compaction finds when its files were compacted meanwhile


class History:
    """Steps on one table. A step returns whether there was anything to do it with."""

    def __init__(self, jvm: Jvm, tables: list[JavaTable | PythonTable], shape: Shape, rng: random.Random) -> None:
        self.done: Counter[str] = Counter()
        self._jvm = jvm
        self._tables = tables
        self._shape = shape
        self._rng = rng
        self._number = count(1)
        self._values = {name: self._some(name) for name in shape.partitions}

    @property
    def folder(self) -> Path:
        return self._tables[0].folder

    def run(self, length: int) -> None:
        """Takes steps until `length` of them were taken."""
        weights = {name: weight * self._rng.choice([0.3, 1, 3]) for name, weight in WEIGHTS.items()}
        self.append()
        taken, tries = 0, 0
        while taken < length and tries < 5 * length:
            taken += self.take(self._rng.choices(list(weights), list(weights.values()))[0])
            tries += 1

    def take(self, name: str) -> bool:
        """Takes one step; what Paimon itself refuses (a fast-forward of an empty branch, say) is counted and left."""
        try:
            taken = bool(getattr(self, name)())
        except (Py4JJavaError, PaimonError) as error:
            if not _is_refusal(error):
                raise
            self.done[f"refused {name}"] += 1
            return False
        self.done[name] += taken
        return taken

    # ---- rows

    def append(self) -> bool:
        self._able("write").write(self._branch(), self._rows())
        return True

    def overwrite(self) -> bool:
        self._able("write").write(self._branch(), self._rows(), {})
        return True

    def delete(self) -> bool:
        return self._shape.keyed and self._do("delete", self._written(), self._rows())

    def compact(self) -> bool:
        return self._do("compact", self._written(), False)

    def compact_fully(self) -> bool:
        return self._do("compact", self._written(), True)

    def merge_manifests(self) -> bool:
        return self._do("compact_manifests", self._written())

    def truncate(self) -> bool:
        return self._do("truncate", self._written())

    def analyze(self) -> bool:
        return self._do("analyze", self._written())

    def evolve(self) -> bool:
        return self._do("set_option", "snapshot.num-retained.min", str(self._rng.randint(1, 9)))

    def abandon(self) -> bool:
        return self._do("abandon", self._branch(), self._rows())

    # ---- refs

    def tag(self, ttl: str | None = None) -> bool:
        branch = self._written()
        found = [] if branch is None else layout.snapshots(self.folder, branch)
        return bool(found) and self._do("tag", branch, f"t{next(self._number)}", self._rng.choice(found), ttl)

    def tag_for_a_while(self) -> bool:
        return self.tag(self._rng.choice(["1h", "1d", "30d"]))

    def drop_tag(self) -> bool:
        """Paimon deletes the files of a tag whose snapshot is gone, also those of a branch: then it is left alone."""
        branch, alone = self._branch(), len(layout.branches(self.folder)) == 1
        held = [name for name in layout.tags(self.folder, branch) if alone or not self._outlives(branch, name)]
        return bool(held) and self._do("drop_tag", branch, self._rng.choice(held))

    def _outlives(self, branch: str, tag: str) -> bool:
        document = layout.document(layout.Root(branch, layout.TAG, tag).path(self.folder))
        return document["id"] not in layout.snapshots(self.folder, branch)

    def branch(self) -> bool:
        """From a tag whose snapshot is there: without it Paimon fails half-way and leaves an unreadable branch."""
        held = [name for name in layout.tags(self.folder, MAIN) if not self._outlives(MAIN, name)]
        return bool(held) and self._do("create_branch", f"b{next(self._number)}", self._rng.choice(held))

    def empty_branch(self) -> bool:
        return self._do("create_branch", f"b{next(self._number)}", None)

    def drop_branch(self) -> bool:
        names = layout.branches(self.folder)[1:]
        return bool(names) and self._do("drop_branch", self._rng.choice(names))

    def fast_forward(self) -> bool:
        names = [name for name in layout.branches(self.folder)[1:] if layout.snapshots(self.folder, name)]
        return bool(names) and self._do("fast_forward", self._rng.choice(names))

    def rollback(self) -> bool:
        found = layout.snapshots(self.folder, MAIN)[:-1]
        return bool(found) and self._do("rollback", MAIN, self._rng.choice(found[-4:]))

    def rollback_to_tag(self) -> bool:
        held = layout.tags(self.folder, MAIN)
        return bool(held) and self._do("rollback", MAIN, self._rng.choice(held))

    def consume(self) -> bool:
        branch = self._written()
        found = [] if branch is None else layout.snapshots(self.folder, branch)
        return bool(found) and self._do("consumer", branch, f"c{next(self._number)}", self._rng.choice(found) + 1)

    def expire(self) -> bool:
        """Paimon's own expiry; only without branches, for it would lose files of theirs."""
        table = self._able("compact")
        if not isinstance(table, JavaTable) or len(layout.branches(self.folder)) > 1:
            return False
        most = self._rng.randint(1, 6)
        changelogs = 1000 if self._shape.decoupled else None
        return bool(expire(self._jvm, table, Retention(1, most, changelog_least=changelogs, changelog_most=changelogs)))

    # ---- choices

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


def _is_refusal(error: Py4JJavaError | PaimonError) -> bool:
    if isinstance(error, PaimonError):
        return error.kind in REFUSALS
    kind = str(error.java_exception.getClass().getSimpleName())
    return kind in REFUSALS or CONFLICT in str(error.java_exception.getMessage())
