"""Random Paimon tables on disk, written by real Paimon. What happens follows from the seed; names and ids do not."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.paimon.backdating import backdate
from harness.paimon.environment import Pypaimon, pypaimon
from harness.paimon.gateway import Jvm, paimon_jvm
from harness.paimon.histories import TableSteps
from harness.paimon.java_table import JavaTable
from harness.paimon.python_table import PythonTable
from harness.paimon.reader import TableReader
from harness.paimon.shapes import Shape, draw

WRITERS = ("java", "java", "java", "python", "both")


@dataclass(frozen=True)
class Paimon:
    """Both implementations, running."""

    java: Jvm
    python: Pypaimon


@dataclass(frozen=True)
class PaimonWorld:
    """A table in ROOT/t, files that it keeps elsewhere in ROOT/elsewhere, and the time at which it is judged."""

    seed: int
    root: Path
    shape: Shape
    now: int
    writer: str
    operations: Counter[str] = field(default_factory=Counter)

    @property
    def folder(self) -> Path:
        return self.root / "t"

    def reader(self) -> TableReader:
        """Returns the plain reader of the table as it is now."""
        return TableReader(self.folder, [self.root / "elsewhere"])


@contextmanager
def paimon() -> Iterator[Paimon]:
    """Yields Paimon in a JVM and in a Python of its own. Raises Missing where one of them cannot be had."""
    with pypaimon() as python, paimon_jvm() as java:
        yield Paimon(java, python)


def grow(both: Paimon, seed: int, root: Path, length: int | None = None) -> PaimonWorld:
    """Returns the world of a seed, written into the empty or absent folder `root`."""
    rng = random.Random(seed)
    root.mkdir(parents=True, exist_ok=True)
    writer = rng.choice(WRITERS)
    shape = draw(rng, "java" if writer == "java" else "python", f"file://{root}/elsewhere")
    tables = tables_of(both, writer, root / "t")
    tables[0].create(shape)
    history = TableSteps(both.java, tables, shape, rng)
    history.run(length or rng.randint(4, 30))
    now = int(time.time() * 1000)
    backdate(root / "t", rng, now)
    return PaimonWorld(seed, root, shape, now, writer, history.done)


def tables_of(both: Paimon, writer: str, folder: Path) -> list[JavaTable | PythonTable]:
    """Returns those that write it: `java`, `python` or `both`. The first one creates the table."""
    python, java = PythonTable(both.python, folder), JavaTable(both.java, folder)
    if writer == "both":
        return [python, java]
    return [java if writer == "java" else python]
