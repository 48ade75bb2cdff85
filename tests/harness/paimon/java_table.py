"""One table through Paimon's Java API: written, compacted, tagged and branched there.

Nothing here lets Paimon expire anything by itself: that would happen at a commit, and lose files of branches.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from harness.paimon.gateway import Jvm
from harness.paimon.java_rows import DELETE, INSERT, JavaRows
from harness.paimon.shapes import COLUMNS, MAIN, Row, Shape

_WRITES = {"write-only": "true"}
_COMPACTS = {
    "write-only": "false",
    "snapshot.num-retained.min": "1000000",
    "snapshot.num-retained.max": "1000000",
    "compaction.min.file-num": "2",
}
_MERGES = {**_WRITES, "manifest.full-compaction-threshold-size": "1 b"}

_DYNAMIC = ("HASH_DYNAMIC", "DYNAMIC")
"""What Paimon calls tables whose writers choose the bucket; the second was its name before 0.9."""


class JavaTable:
    """A table in a folder. Every call opens it anew, as another process would.

    Writers that commit at the same time need a `user` each: where two commits of one user with one number meet, Paimon
    takes the second for the first one, come again.
    """

    def __init__(self, jvm: Jvm, folder: Path, user: str = "worlds") -> None:
        self.folder = folder
        self._user = user
        self.rows = JavaRows(jvm)
        self._jvm = jvm
        self._commits = count(1)

    def create(self, shape: Shape) -> None:
        schema = self._jvm.paimon("schema.Schema").newBuilder()
        for name, kind in COLUMNS.items():
            made = self._type(kind)
            schema = schema.column(name, made.notNull() if name in shape.keys else made)
        schema = schema.partitionKeys(self._jvm.list(shape.partitions)).primaryKey(self._jvm.list(shape.keys))
        self._schemas().createTable(schema.options(self._jvm.map(shape.options)).build())

    def open(self, branch: str = MAIN, options: Mapping[str, str] | None = None) -> Any:
        """Returns the Java table; `options` go over its own."""
        table = self._jvm.paimon("table.FileStoreTableFactory").create(self._io(), self._path())
        table = table if branch == MAIN else table.switchToBranch(branch)
        return table.copy(self._jvm.map(options)) if options else table

    # ---- commits

    def write(self, branch: str, rows: Sequence[Row], overwrite: Mapping[str, Any] | None = None) -> None:
        """Adds rows; `overwrite` are the partition values that they replace, of the whole table where it is empty."""
        self.write_through(self.open(branch, _WRITES), rows, overwrite)

    def write_through(self, opened: Any, rows: Sequence[Row], overwrite: Mapping[str, Any] | None = None) -> None:
        """Adds rows as a job that runs does: with the options that it had when it opened the table."""
        with self._writing(opened, rows) as write:
            self._commit(opened, write, overwrite)

    def abandon(self, branch: str, rows: Sequence[Row]) -> None:
        """Writes files and never commits them, as a writer that was killed."""
        with self._writing(self.open(branch, _WRITES), rows) as write:
            write.prepareCommit(True, next(self._commits))

    def delete(self, branch: str, rows: Sequence[Row]) -> None:
        """Removes rows of a table with a primary key."""
        table = self.open(branch, _WRITES)
        with self._writing(table, rows, DELETE) as write:
            self._commit(table, write)

    def compact(self, branch: str, full: bool) -> None:
        table = self.open(branch, _COMPACTS)
        with self._writing(table) as write:
            if table.bucketMode().name() == "BUCKET_UNAWARE":
                self._compact_unaware(table, write)
                return
            for entry in table.newSnapshotReader().bucketEntries():
                write.compact(entry.partition(), entry.bucket(), full)
            self._commit(table, write)

    def compact_manifests(self, branch: str) -> None:
        with self._committing(self.open(branch, _MERGES)) as commit:
            commit.compactManifests()

    def truncate(self, branch: str) -> None:
        with self._committing(self.open(branch, _WRITES)) as commit:
            commit.truncateTable()

    def analyze(self, branch: str) -> None:
        """Adds a snapshot with statistics."""
        table = self.open(branch, _WRITES)
        latest = table.latestSnapshot().get()
        document = f'{{"snapshotId": {latest.id()}, "schemaId": {latest.schemaId()}, "mergedRecordCount": 1}}'
        with self._committing(table) as commit:
            commit.updateStatistics(self._jvm.paimon("stats.Statistics").fromJson(document))

    def set_option(self, key: str, value: str) -> None:
        """Writes a new schema."""
        change = self._jvm.paimon("schema.SchemaChange").setOption(key, value)
        self._schemas().commitChanges(self._jvm.list([change]))

    def remove_option(self, key: str) -> None:
        """Writes a new schema."""
        change = self._jvm.paimon("schema.SchemaChange").removeOption(key)
        self._schemas().commitChanges(self._jvm.list([change]))

    # ---- refs and consumers

    def tag(self, branch: str, name: str, snapshot: int, ttl: str | None = None) -> None:
        """Tags a snapshot; `ttl` in Paimon's words, such as `2h`."""
        lasting = [] if ttl is None else [self._jvm.paimon("utils.TimeUtils").parseDuration(ttl)]
        self.open(branch).createTag(name, snapshot, *lasting)

    def drop_tag(self, branch: str, name: str) -> None:
        self.open(branch).deleteTag(name)

    def create_branch(self, name: str, from_tag: str | None) -> None:
        self.open().createBranch(*([name] if from_tag is None else [name, from_tag]))

    def drop_branch(self, name: str) -> None:
        self.open().deleteBranch(name)

    def fast_forward(self, name: str) -> None:
        self.open().fastForward(name)

    def rollback(self, branch: str, target: int | str) -> None:
        self.open(branch).rollbackTo(target)

    def consumer(self, branch: str, name: str, next_snapshot: int) -> None:
        self.open(branch).consumerManager().resetConsumer(name, self._jvm.paimon("consumer.Consumer")(next_snapshot))

    # ---- how a commit is made

    @contextmanager
    def _writing(self, table: Any, rows: Sequence[Row] = (), kind: str = INSERT) -> Iterator[Any]:
        with tempfile.TemporaryDirectory() as spill:
            write = table.newWrite(self._user).withIOManager(self._jvm.paimon("disk.IOManager").create(spill))
            dynamic = table.bucketMode().name() in _DYNAMIC
            for row in rows:
                write.write(self.rows.row(row, kind), *([row[0] % 2] if dynamic else []))
            try:
                yield write
            finally:
                write.close()

    @contextmanager
    def _committing(self, table: Any, overwrite: Mapping[str, Any] | None = None) -> Iterator[Any]:
        commit = table.newCommit(self._user)
        if overwrite is not None:
            commit = commit.withOverwrite(self._jvm.map(overwrite))
        try:
            yield commit
        finally:
            commit.close()

    def _commit(self, table: Any, write: Any, overwrite: Mapping[str, Any] | None = None) -> None:
        number = next(self._commits)
        with self._committing(table, overwrite) as commit:
            commit.commit(number, write.prepareCommit(True, number))

    def _compact_unaware(self, table: Any, write: Any) -> None:
        """A table without buckets is compacted task by task; none, where it has too few files."""
        tasks = self._jvm.paimon("append.AppendCompactCoordinator")(table, False).run()
        messages = [task.doCompact(table, write.getWrite()) for task in tasks]
        if messages:
            with self._committing(table) as commit:
                commit.commit(next(self._commits), self._jvm.list(messages))

    def _type(self, kind: str) -> Any:
        types = self._jvm.paimon("types.DataTypes")
        return types.TIMESTAMP(3) if kind == "TIMESTAMP(3)" else getattr(types, kind)()

    def _io(self) -> Any:
        return self._jvm.paimon("fs.local.LocalFileIO").create()

    def _path(self) -> Any:
        return self._jvm.paimon("fs.Path")(str(self.folder))

    def _schemas(self) -> Any:
        return self._jvm.paimon("schema.SchemaManager")(self._io(), self._path())
