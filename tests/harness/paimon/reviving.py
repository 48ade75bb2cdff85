"""An old snapshot as the newest one: its files are added again after they had been removed.

Paimon 2 has it as the procedure `rollback_to_as_latest`; 1.4 can commit the same through its Java API. After it a file
that a snapshot removed is needed again, so Paimon's own expiry, which goes by what snapshots removed, deletes it.
"""

from __future__ import annotations

from typing import Any

from harness.paimon.gateway import Jvm
from harness.paimon.java_table import JavaTable

_WHOLE_TABLE = {"write-only": "true", "dynamic-partition-overwrite": "false"}


def revive(jvm: Jvm, table: JavaTable, branch: str, snapshot: int) -> bool:
    """Returns whether the rows of an old snapshot are the newest again.

    Not where it has index files, which this does not carry over, nor where it shares files with the newest.
    """
    opened = table.open(branch, _WHOLE_TABLE)
    old, new = opened.snapshot(snapshot), opened.latestSnapshot().get()
    entries = _live(opened, old)
    shared = _names(entries) & _names(_live(opened, new))
    if not entries or shared or old.indexManifest() is not None or new.indexManifest() is not None:
        return False
    # A scan drops what any manifest removes, in whatever order: the removals must be out of the manifests first.
    table.compact_manifests(branch)
    commit = opened.newCommit("revival").withOverwrite(jvm.map({}))
    try:
        commit.commit(1, jvm.list(_message(jvm, entry) for entry in entries))
    finally:
        commit.close()
    return True


def _live(opened: Any, snapshot: Any) -> list[Any]:
    return list(opened.store().newScan().withSnapshot(snapshot).plan().files())


def _names(entries: list[Any]) -> set[str]:
    return {str(entry.fileName()) for entry in entries}


def _message(jvm: Jvm, entry: Any) -> Any:
    added = jvm.paimon("io.DataIncrement")(jvm.list([entry.file()]), jvm.list([]), jvm.list([]))
    compacted = jvm.paimon("io.CompactIncrement").emptyIncrement()
    message = jvm.paimon("table.sink.CommitMessageImpl")
    return message(entry.partition(), entry.bucket(), entry.totalBuckets(), added, compacted)
