"""What Iceberg's Java library does with a world: the snapshots and refs that it drops and the files that it deletes.

Java commits to a copy of the metadata in a folder of its own and its deletes go into a list,
so a world stays as it was. Victims are stated twice, by the difference of what the metadata needs before and after
Java's commit and by what its reachable cleanup deletes; the two must be one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from typing import Any

from .jvm import Jvm
from .options import Options
from .places import canonical
from .reading import Reading
from .worlds import World

Paths = frozenset[str]
NO_SNAPSHOT = 1  # Java ignores an id that it does not know, but cleans up by reachability once an id is named.


@dataclass(frozen=True)
class Expiry:
    """One run of Java's expiry: the metadata that it left and what it deleted."""

    document: dict[str, Any]
    deleted: Paths
    incremental: bool


@dataclass(frozen=True)
class Verdict:
    """Ids as strings; paths in canonical form."""

    expired: frozenset[str]
    refs: frozenset[str]
    victims: Paths
    needed_after: Paths
    unforced: Expiry

    @property
    def lost(self) -> Paths:
        """Files that a kept snapshot needs and that Java, left to choose, deletes."""
        return self.unforced.deleted & self.needed_after

    @property
    def left(self) -> Paths:
        """Files that nothing needs and that Java, left to choose, leaves behind."""
        return self.victims - self.unforced.deleted


class Court:
    """Judges one world; what a manifest holds is read once for all questions."""

    def __init__(self, jvm: Jvm, world: World) -> None:
        self._jvm = jvm
        self._world = world
        self._tables = jvm.iceberg("hadoop.HadoopTables")(jvm.java("org.apache.hadoop.conf.Configuration")())
        with tempfile.TemporaryDirectory() as scratch:
            table = self._load(Path(scratch))
            self._reading = Reading(jvm, table)
            self._before = jvm.document(table.operations().current())
            self.needed = self._needed(self._before)

    def verdict(self, options: Options) -> Verdict:
        """Java's verdict. Raises AssertionError where Java's own statements differ, for then there is no judge."""
        forced, unforced = self._expire(options, by_id=True), self._expire(options, by_id=False)
        after = self._needed(forced.document)
        verdict = Verdict(
            expired=frozenset(map(str, _ids(self._before) - _ids(forced.document))),
            refs=frozenset(set(self._before["refs"]) - set(forced.document["refs"])),
            victims=self.needed - after,
            needed_after=after,
            unforced=unforced,
        )
        assert _ids(forced.document) == _ids(unforced.document), "Java decided twice and differently"
        assert forced.deleted == verdict.victims, "reachable cleanup is not the difference of before and after"
        assert unforced.incremental or unforced.deleted == verdict.victims, "the forced choice changed the outcome"
        return verdict

    def _load(self, scratch: Path) -> Any:
        metadata = scratch / "metadata"
        metadata.mkdir()
        suffix = ".gz.metadata.json" if ".gz." in self._world.metadata.name else ".metadata.json"
        copyfile(self._world.metadata, metadata / f"v1{suffix}")
        (metadata / "version-hint.text").write_text("1")
        return self._tables.load(str(scratch))

    def _expire(self, options: Options, *, by_id: bool) -> Expiry:
        deleted = self._jvm.java("java.util.concurrent.ConcurrentLinkedQueue")()
        with tempfile.TemporaryDirectory() as scratch:
            table = self._load(Path(scratch))
            update = table.expireSnapshots().deleteWith(self._jvm.consumer_into(deleted))
            if options.older_than is not None:
                update = update.expireOlderThan(options.older_than)
            if options.retain_last is not None:
                update = update.retainLast(options.retain_last)
            if by_id:
                update = update.expireSnapshotId(NO_SNAPSHOT)
            update.commit()
            document = self._jvm.document(table.operations().current())
        return Expiry(document, _canonical(self._jvm.texts(deleted)), self._chose_incremental(update))

    def _chose_incremental(self, update: Any) -> bool:
        choice = update.getClass().getDeclaredField("incrementalCleanup")
        choice.setAccessible(True)
        return bool(choice.get(update))

    def _needed(self, document: dict[str, Any]) -> Paths:
        """Every path that the snapshots and statistics of this metadata need."""
        paths: set[str] = set()
        for snapshot_id in _ids(document):
            paths |= self._reading.needs(snapshot_id)
        for registered in document.get("statistics", []) + document.get("partition-statistics", []):
            paths.add(registered["statistics-path"])
        return _canonical(paths)


def _ids(document: dict[str, Any]) -> set[int]:
    return {snapshot["snapshot-id"] for snapshot in document["snapshots"]}


def _canonical(paths: Iterable[str]) -> Paths:
    return frozenset(map(canonical, paths))
