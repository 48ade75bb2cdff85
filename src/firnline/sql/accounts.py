"""`refs`, `history`, `runs` and `ledger`: what a table and its records say of themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from firnline.errors import ObjectNotFound
from firnline.history.ledger import ends_folder, snapshots_folder
from firnline.journal.parts import ListAndGet, part_keys, read_part
from firnline.model.snapshots import SnapshotId
from firnline.model.times import parse_instant
from firnline.ports.formats import State
from firnline.ports.inspect import Inspect
from firnline.sql.relations import Piece, Ready, TimeBounds
from firnline.sql.snapshots import INSTANT, TEXTS, numbers

_TALLIES = pa.map_(pa.string(), pa.struct([("files", pa.int64()), ("bytes", pa.int64())]))
_WHOLE = pa.int64()
RUNS = pa.schema(
    [
        ("run", pa.string()), ("kind", pa.string()), ("table", pa.string()), ("state", pa.string()),
        ("planned_at", INSTANT), ("grace_ends", INSTANT), ("planned_snapshots", _WHOLE), ("planned_files", _WHOLE),
        ("planned_bytes", _WHOLE), ("expired", pa.list_(_WHOLE)), ("expired_refs", pa.list_(pa.string())),
        ("outcomes", _TALLIES),
    ]
)  # fmt: skip
LEDGER = pa.schema(
    [
        ("table", pa.string()), ("table_uuid", pa.string()), ("run", pa.string()), ("policy", pa.string()),
        ("snapshot_id", _WHOLE), ("parent_id", _WHOLE), ("committed_at", INSTANT), ("operation", pa.string()),
        ("summary", TEXTS), ("expired_at", INSTANT), ("lost_reasons", pa.list_(pa.string())),
        ("run_victims", _TALLIES), ("archive_location", pa.string()),
        ("run_end", pa.string()), ("run_ended_at", INSTANT), ("run_outcomes", _TALLIES),
    ]
)  # fmt: skip
_IDS = ("snapshot_id", "parent_id")
_OF_END = {"run_end": "end", "run_ended_at": "ended_at", "run_outcomes": "outcomes"}


def ref_rows(state: State) -> Ready:
    """Returns the refs, as in Iceberg's table of that name."""
    refs = list(state.refs.values())
    columns = {
        "name": pa.array([ref.name for ref in refs], pa.string()),
        "type": pa.array([ref.kind.value.upper() for ref in refs], pa.string()),
        "snapshot_id": numbers([ref.snapshot for ref in refs]),
        "max_reference_age_in_ms": pa.array([ref.max_ref_age_ms for ref in refs], _WHOLE),
        "min_snapshots_to_keep": pa.array([ref.min_snapshots_to_keep for ref in refs], pa.int32()),
        "max_snapshot_age_in_ms": pa.array([ref.max_snapshot_age_ms for ref in refs], _WHOLE),
    }
    return Ready(pa.table(columns))


def log_rows(inspect: Inspect, state: State) -> Ready:
    """Returns which snapshot became current when, as in Iceberg's `history`."""
    log = list(inspect.log(state))
    parents = [state.graph.by_id[each].parent if each in state.graph else None for _, each in log]
    ancestors = _ancestors(state)
    columns = {
        "made_current_at": pa.array([at * 1000 for at, _ in log], INSTANT),
        "snapshot_id": numbers([each for _, each in log]),
        "parent_id": numbers(parents),
        "is_current_ancestor": pa.array([each in ancestors for _, each in log], pa.bool_()),
    }
    return Ready(pa.table(columns))


def _ancestors(state: State) -> set[SnapshotId]:
    found: set[SnapshotId] = set()
    current = state.current
    while current is not None and current in state.graph and current not in found:
        found.add(current)
        current = state.graph.by_id[current].parent
    return found


def run_rows(runs: Sequence[Mapping[str, Any]]) -> Ready:
    """Returns the recorded runs, from the facts that `firnline runs` tells of each."""
    return Ready(pa.Table.from_pylist([_run_row(facts) for facts in runs], schema=RUNS))


def _run_row(facts: Mapping[str, Any]) -> dict[str, Any]:
    victims = facts["planned"]["victims"]
    return {
        **{name: facts[name] for name in ("run", "kind", "table", "state", "expired_refs")},
        "planned_at": parse_instant(facts["planned_at"]) * 1000,
        "grace_ends": None if facts["grace_ends"] is None else parse_instant(facts["grace_ends"]) * 1000,
        "planned_snapshots": facts["planned"]["snapshots"],
        "planned_files": victims["files"],
        "planned_bytes": victims["bytes"],
        "expired": numbers(facts["expired"]).to_pylist(),
        "outcomes": list(facts["outcomes"].items()),
    }


@dataclass(frozen=True, slots=True)
class LedgerRows:
    """The ledger, a piece for each run: why each snapshot went, and how its run ended."""

    store: ListAndGet
    root: str

    @property
    def schema(self) -> pa.Schema:
        return LEDGER

    def pieces(self, bounds: TimeBounds) -> Sequence[Piece]:
        return part_keys(self.store, snapshots_folder(self.root))

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        found = read_part(self.store, piece)
        end = self._end(str(piece).rpartition("/")[2])
        schema = pa.schema([LEDGER.field(name) for name in columns])
        arrays = [
            _repeated(end, _OF_END[name], field.type, len(found)) if name in _OF_END else _as(found, name, field.type)
            for name, field in zip(columns, schema, strict=True)
        ]
        yield from pa.table(arrays, schema=schema).to_batches()

    def _end(self, name: str) -> Mapping[str, Any]:
        """Returns how the run of that name ended; nothing where it did not yet."""
        try:
            rows = read_part(self.store, f"{ends_folder(self.root)}/{name}").to_pylist()
        except ObjectNotFound:
            return {}
        return rows[0] if rows else {}


def _repeated(end: Mapping[str, Any], name: str, kind: pa.DataType, times: int) -> pa.Array:
    return pa.array([end.get(name)] * times, kind)


def _as(found: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    """Returns a column with its type; ids, which are text in the ledger, as numbers."""
    column = found.column(name)
    return numbers(column.to_pylist()) if name in _IDS else column.cast(kind)
