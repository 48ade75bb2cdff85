"""What the tests of the history look at: the table's own words, read without firnline's code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from firnline.ops.runs.status import RunStatus
from harness.world import World

PATH = "firnline.expired-snapshots-path"
INDEX = "firnline.expired-snapshots-index"


def local(path: str) -> Path:
    return Path(path.removeprefix("file://"))


def expire(world: World, grace: str = "24h", **options: Any) -> RunStatus:
    carried = world.process().expire(world.table, grace=grace, **options)
    assert isinstance(carried, RunStatus)
    return carried


def pointer(world: World) -> str | None:
    found: str | None = world.writer.document()["properties"].get(PATH)
    return found


def listed(world: World) -> list[dict[str, Any]]:
    """Returns the list that the pointer names, as a simple reader of the proposal would see it."""
    path = pointer(world)
    assert path is not None
    found: list[dict[str, Any]] = json.loads(local(path).read_bytes())
    return found


def ids(world: World, *names: str) -> set[int]:
    return {world.snapshots[name] for name in names}


def files(world: World) -> list[Path]:
    """Returns every file of the table's history."""
    return sorted((world.folder / "warehouse").glob("*/_firnline/history/*/*"))


def ledger(world: World, kind: str) -> list[dict[str, Any]]:
    """Returns the rows of one part of the ledger, as any reader of Parquet sees them."""
    import pyarrow.parquet

    found = sorted((world.folder / "warehouse").glob(f"*/_firnline/ledger/{kind}/*.parquet"))
    return [row for path in found for row in pyarrow.parquet.read_table(path).to_pylist()]
