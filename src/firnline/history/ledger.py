"""The ledger: why each snapshot went, in which run, and when its bytes did. Parquet, one object per run and kind.

    ROOT/ledger/snapshots/STAMP.parquet    one row per expired snapshot, written with the commit
    ROOT/ledger/ends/STAMP.parquet         one row per run, written when its purge ends or it was undone

Two folders, so that any engine reads either as one table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from firnline.history.listing import SnapshotRow
from firnline.model.locations import join

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "ledger"


class End(StrEnum):
    PURGED = "purged"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the ledger says of a run in every row: `victims` are files and bytes by kind, as they were planned.
    `archived` is where the metadata of a tier lies, by the ids of the snapshots that were handed to it.
    """

    run: str
    table: str
    uuid: str
    policy: str
    expired_at_ms: int
    victims: Mapping[str, tuple[int, int]]
    archived: Mapping[str, str] = field(default_factory=dict)


def snapshots_folder(root: str) -> str:
    return join(root, FOLDER, "snapshots")


def ends_folder(root: str) -> str:
    return join(root, FOLDER, "ends")


def snapshot_rows(facts: RunFacts, rows: Sequence[SnapshotRow], lost: Mapping[str, Sequence[str]]) -> pa.Table:
    """Returns the expired snapshots of a run; `lost` says, by id, why nothing kept them."""
    import pyarrow as pa

    victims = _tallies(facts.victims)
    columns = {
        "table": pa.array([facts.table] * len(rows), pa.string()),
        "table_uuid": pa.array([facts.uuid] * len(rows), pa.string()),
        "run": pa.array([facts.run] * len(rows), pa.string()),
        "policy": pa.array([facts.policy] * len(rows), pa.string()),
        "snapshot_id": pa.array([row.snapshot_id for row in rows], pa.string()),
        "parent_id": pa.array([row.parent_id for row in rows], pa.string()),
        "committed_at": pa.array([row.committed_at_ms for row in rows], _instant()),
        "operation": pa.array([row.operation for row in rows], pa.string()),
        "summary": pa.array([list(row.summary.items()) for row in rows], pa.map_(pa.string(), pa.string())),
        "expired_at": pa.array([facts.expired_at_ms] * len(rows), _instant()),
        "lost_reasons": pa.array([list(lost.get(row.snapshot_id, ())) for row in rows], pa.list_(pa.string())),
        "run_victims": pa.array([victims] * len(rows), _by_name()),
        "archive_location": pa.array([facts.archived.get(row.snapshot_id) for row in rows], pa.string()),
    }
    return pa.table(columns)


def end_row(run: str, table: str, end: End, at_ms: int, outcomes: Mapping[str, tuple[int, int]]) -> pa.Table:
    """Returns the end of a run: files and bytes by what became of them."""
    import pyarrow as pa

    columns = {
        "run": pa.array([run], pa.string()),
        "table": pa.array([table], pa.string()),
        "end": pa.array([end.value], pa.string()),
        "ended_at": pa.array([at_ms], _instant()),
        "outcomes": pa.array([_tallies(outcomes)], _by_name()),
    }
    return pa.table(columns)


def _instant() -> pa.DataType:
    import pyarrow as pa

    return pa.timestamp("ms", "UTC")


def _by_name() -> pa.DataType:
    import pyarrow as pa

    return pa.map_(pa.string(), pa.struct([("files", pa.int64()), ("bytes", pa.int64())]))


def _tallies(by_name: Mapping[str, tuple[int, int]]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, {"files": files, "bytes": size}) for name, (files, size) in by_name.items()]
