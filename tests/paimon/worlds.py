"""A real Paimon table before and after firnline worked on it, as the plain reader and Paimon's own readers see it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firnline.testing.dated import copy_dated
from firnline.testing.folder_process import FolderProcess
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import CHANGELOG, SNAPSHOT, TAG, PaimonRoot
from harness.paimon.reader import TableReader
from harness.paimon.rows import Rows, java_rows, python_rows
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon, PaimonWorld, grow

from .small import quick_folder

KEPT_TAG = "firnline-snapshot-"
OWN = "/_firnline/"


@contextmanager
def grown(both: Paimon, seed: int, length: int | None = None) -> Iterator[PaimonWorld]:
    """A random table that Paimon wrote, for as long as the block lasts; its history has `length` steps, if told."""
    root = quick_folder()
    try:
        yield grow(both, seed, root, length)
    finally:
        shutil.rmtree(root)


@dataclass(frozen=True)
class Seen:
    """A table at one moment: what every root needs, what nobody needs, and the rows that Paimon reads.

    `as_tags` is what snapshots would need as tags: a tag holds no changes. `restored` may stay for changelogs.
    """

    needs: dict[PaimonRoot, frozenset[str]]
    as_tags: dict[PaimonRoot, frozenset[str]]
    missing: dict[PaimonRoot, frozenset[str]]
    garbage: frozenset[str]
    restored: frozenset[str]
    rows: Rows

    @staticmethod
    def of(both: Paimon, world: PaimonWorld) -> Seen:
        return Seen.by(world.reader(), read_rows(both, world))

    @staticmethod
    def by(reader: TableReader, rows: Rows) -> Seen:
        found = reader.reachable()
        return Seen(
            {root: frozenset(each.files) for root, each in found.items()},
            {root: frozenset(reader.needs(root, as_tag=True).files) for root in found if root.kind == SNAPSHOT},
            {root: frozenset(each.missing) for root, each in found.items()},
            frozenset(path for path in reader.orphans() if OWN not in path),
            frozenset(reader.restored()),
            rows,
        )


def read_rows(both: Paimon, world: PaimonWorld) -> Rows:
    """Returns the rows as pypaimon reads them; it cannot read deletion vectors or manifests of every Java table."""
    if world.shape.writer == "python":
        return python_rows(both.python, world.folder)
    return java_rows(JavaTable(both.java, world.folder))


def asked(rng: random.Random, now_ms: int) -> dict[str, Any]:
    """Returns the options of a run: Paimon's own rule with some of its numbers replaced, or rules of firnline's."""
    older = {"older_than": now_ms - rng.choice([0, 1, 6, 24, 72]) * 3_600_000}
    rules: list[dict[str, Any]] = [
        {"retain_last": rng.randint(1, 4), **older},
        {"keep": {"last": str(rng.randint(1, 3)), "daily": str(rng.randint(1, 3))}},
        {"keep": {"within": f"{rng.randint(1, 30)}h", "hourly": "2"}},
    ]
    return {**rng.choice(rules), "blast_radius": 1.0}


def compare(before: Seen, after: Seen) -> None:
    """Raises AssertionError where a root that is left lost anything, or garbage was made or removed."""
    compare_roots(before, after)
    assert not before.garbage - after.garbage, "what was garbage before is none of this run's business"
    assert not after.garbage - before.garbage - after.restored, "all that only these held is gone"


def compare_roots(before: Seen, after: Seen) -> None:
    """Raises AssertionError where a root that is left lost anything."""
    for root in after.needs:
        source = as_before(root, before)
        if source is None:
            continue
        needed = before.needs if root.kind == source.kind else before.as_tags
        lost = needed[source] - after.needs[root]
        assert not {path for path in lost if f"/{source.kind}/" not in path}, (root, sorted(lost)[:3])
        assert after.missing[root] <= before.missing[source], (root, after.missing[root])
        if root in after.rows and source in before.rows:
            assert after.rows[root] == before.rows[source], root


def is_sound(world: PaimonWorld, seen: Seen) -> bool:
    """Tells whether a check finds nothing, unless Paimon itself lost something: with a tag it deletes files that a
    changelog needs.
    """
    return any(seen.missing.values()) or FolderProcess().check(table(world)).sound


def as_before(root: PaimonRoot, before: Seen) -> PaimonRoot | None:
    """Returns the root that this one was before the run; a tag of firnline's own was a snapshot or another tag."""
    if root in before.needs:
        return root
    if root.kind == CHANGELOG:
        return None
    number = root.name.removeprefix(KEPT_TAG) if root.kind == TAG else ""
    snapshot = PaimonRoot(root.branch, "snapshot", number)
    return snapshot if snapshot in before.needs else None


@contextmanager
def aside(world: PaimonWorld) -> Iterator[None]:
    """Puts the world back as it was: files that it keeps elsewhere are named by their full path."""
    copy = world.root.with_name(f"{world.root.name}.aside")
    shutil.copytree(world.root, copy, copy_function=copy_dated)
    try:
        yield
    finally:
        shutil.rmtree(world.root)
        copy.replace(world.root)


def table(world: PaimonWorld) -> str:
    return str(world.folder)


def snapshots(folder: Path, branch: str = MAIN) -> list[int]:
    from harness.paimon import layout

    return layout.snapshots(folder, branch)
