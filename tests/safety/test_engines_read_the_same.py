"""After races, crashes and undos, PyIceberg and Spark read from every table the rows that were once committed."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from firnline.formats.iceberg.runtime import PACKAGE
from firnline.testing.faults import CHANGES
from harness.disks import local
from harness.operations import operations
from harness.races import ACTIONS, TAKES_UP_OLD_FILES, race, verbs_of
from harness.servers.jars import for_spark
from harness.world import World

FULL = bool(os.environ.get("FIRNLINE_FULL"))
OPERATIONS = {each.name: each for each in operations()}
RACED = ("expire --grace 0s", "undo")
READER = Path(__file__).with_name("spark_rows.py")


@pytest.fixture(scope="module")
def worlds() -> Iterator[dict[str, World]]:
    """A table for each action, raced with one operation or the other (in the long count with both)."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="firnline-engines-", dir=memory if memory.is_dir() else None))
    made: dict[str, World] = {}
    for turn, name in enumerate(RACED):
        verbs = verbs_of(OPERATIONS[name], World.make(folder / f"uncut {name}"))
        for action in list(ACTIONS) if FULL else list(ACTIONS)[turn :: len(RACED)]:
            world = made[f"{name} × {action}"] = World.make(folder / f"{name} {action}")
            race(OPERATIONS[name], action, boundary(name, action, verbs), world)
    yield made
    shutil.rmtree(folder, ignore_errors=True)


def boundary(operation: str, action: str, verbs: tuple[str, ...]) -> int:
    """Returns a place where something is about to change; not within a purge for what takes up the purged files."""
    last = verbs.index("delete") if "delete" in verbs and action in TAKES_UP_OLD_FILES else len(verbs)
    decisive = [at for at, verb in enumerate(verbs[:last], 1) if verb in CHANGES]
    return random.Random(f"{operation} × {action}, read by others").choice(decisive)


@pytest.mark.full
def test_pyiceberg(worlds: dict[str, World]) -> None:
    for name, world in worlds.items():
        assert world.pyiceberg_rows() == world.rows(), name


@pytest.mark.full
@pytest.mark.spark
def test_spark(worlds: dict[str, World], tmp_path: Path) -> None:
    """One session reads every snapshot of every table."""
    asked = {
        name: {"metadata": str(local(world.writer.place())), "snapshots": sorted(world.rows())}
        for name, world in worlds.items()
    }
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    files = [str(tmp_path / name) for name in ("asked.json", "answer.json")]
    subprocess.run([sys.executable, str(READER), *files, for_spark([PACKAGE])], check=True)
    answer = json.loads((tmp_path / "answer.json").read_bytes())
    for name, world in worlds.items():
        assert answer[name] == {str(each): list(rows) for each, rows in world.rows().items()}, name
