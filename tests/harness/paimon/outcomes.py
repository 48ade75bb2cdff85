"""What an operation of Paimon's own does to a table, seen on a table that is put back afterwards."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from firnline.testing.dated import copy_dated
from harness.paimon.expiry import Retention, expire
from harness.paimon.gateway import Jvm
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import PaimonRoot, plain
from harness.paimon.reader import Needs, TableReader
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import PaimonWorld


@dataclass(frozen=True)
class ExpiryOutcome:
    """Paths are relative to the world's root. `said` is how many snapshots Paimon counts as expired."""

    said: int
    expired: frozenset[PaimonRoot]
    deleted: frozenset[str]
    lost: dict[PaimonRoot, frozenset[str]]
    """Files that are gone although a root that is still there needs them, by root."""
    left: frozenset[str]
    """Garbage that was no garbage before: only what expired needed it, and it is still there."""


def paimon_expire(jvm: Jvm, world: PaimonWorld, retention: Retention, branch: str = MAIN) -> ExpiryOutcome:
    """Returns what Paimon's `newExpireSnapshots` does to the world, which is as before afterwards."""
    return outcome(jvm, world, lambda table: expire(jvm, table, retention, branch))


def outcome(jvm: Jvm, world: PaimonWorld, action: Callable[[JavaTable], int]) -> ExpiryOutcome:
    """Returns what an action on the table does. It runs in place: files kept elsewhere are named by their full path."""
    before = world.reader()
    needs, garbage = before.reachable(), before.orphans()
    aside = world.root.with_name(f"{world.root.name}.before")
    shutil.copytree(world.root, aside, copy_function=copy_dated)
    try:
        said = action(JavaTable(jvm, world.folder))
        return _seen(said, before, needs, garbage, world.reader(), world.root)
    finally:
        shutil.rmtree(world.root)
        aside.replace(world.root)


def paimon_orphans(jvm: Jvm, table: JavaTable, older_than: int) -> set[str]:
    """Returns what Paimon's own search for orphans would delete, as full paths; nothing is deleted."""
    search = jvm.paimon("operation.LocalOrphanFilesClean")(table.open(), older_than, True)
    return {plain(path.toString()) for path in search.clean().getDeletedFilesPath()}


def _seen(
    said: int, before: TableReader, needs: dict[PaimonRoot, Needs], garbage: set[str], after: TableReader, place: Path
) -> ExpiryOutcome:
    gone = before.disk - after.disk
    remaining = after.reachable()
    lost = {root: needs[root].files & gone for root in remaining if root in needs}
    return ExpiryOutcome(
        said,
        frozenset(needs.keys() - remaining.keys()),
        _relative(gone, place),
        {root: _relative(files, place) for root, files in lost.items() if files},
        _relative(after.orphans() - garbage, place),
    )


def _relative(paths: set[str], place: Path) -> frozenset[str]:
    return frozenset(os.path.relpath(path, place) for path in paths)
