"""Answering "why is this still here?" for a snapshot, a ref or a file."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firnline.errors import UsageError
from firnline.model.files import File, FileKind
from firnline.model.locations import identity, is_dotted, join
from firnline.model.portions import portions
from firnline.model.snapshots import SnapshotId, snapshot_of
from firnline.model.times import format_instant
from firnline.ops.settle import Settled, settle
from firnline.plans.request import Request
from firnline.policy.config import Section
from firnline.policy.why import explain_expired
from firnline.ports.formats import Expand, Expanded, State, TableFormat
from firnline.ports.progress import Progress
from firnline.ports.tables import TableSource

_THREADS = 8
_WHOLE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
OWN_METADATA = "the table's own metadata"


@dataclass(frozen=True, slots=True)
class SnapshotAnswer:
    """Why one snapshot stays, or why nothing keeps it."""

    snapshot: SnapshotId
    timestamp_ms: int
    kept: bool
    refs: tuple[str, ...]
    reasons: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "snapshot": self.snapshot,
            "timestamp": format_instant(self.timestamp_ms),
            "kept": self.kept,
            "refs": list(self.refs),
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """Why something is here. `file` None: the question was about a snapshot. `needed_by` is newest first.

    `is_metadata`: the table itself needs the file, whatever becomes of its snapshots.
    """

    table: str
    file: str | None
    needed_by: tuple[SnapshotAnswer, ...]
    is_metadata: bool = False

    @property
    def kept(self) -> bool:
        return self.is_metadata or any(each.kept for each in self.needed_by)

    def to_json(self) -> dict[str, Any]:
        answers = [each.to_json() for each in self.needed_by]
        if self.file is None:
            return {"table": self.table, **answers[0]}
        reasons = {"reasons": [OWN_METADATA]} if self.is_metadata else {}
        return {"table": self.table, "file": self.file, "kept": self.kept, "needed_by": answers, **reasons}


def why(source: TableSource, config: Section, request: Request, what: str, now_ms: int, progress: Progress) -> Answer:
    """Returns the answer for a snapshot id, a ref's name or a file's path. Raises where the table has no such thing."""
    state = source.load()
    settled = settle(state, source.name, config, request, now_ms)
    snapshot = what if what in state.graph else (state.refs[what].snapshot if what in state.refs else None)
    if snapshot is not None and snapshot in state.graph:
        return Answer(state.table, None, (_about(snapshot, state, settled),))
    if "/" not in what:
        raise UsageError(
            f"{state.table} has no snapshot or ref {what!r}",
            hint="`firnline plan TABLE --list` shows the snapshots; a file is named by its path",
        )
    return _about_file(what, state, settled, source.format, progress)


def _about_file(what: str, state: State, settled: Settled, table_format: TableFormat, progress: Progress) -> Answer:
    path = _resolved(what, state.location)
    if identity(path) in {identity(each) for each in table_format.metadata_files(state)}:
        return Answer(state.table, path, (), is_metadata=True)
    needing = _needing(identity(path), state, table_format, progress)
    if not needing and path != what and not Path(path).exists():
        raise UsageError(f"{what!r} is no file here and none of {state.table}", hint="name the file by its whole path")
    ordered = sorted(needing, key=lambda each: -state.graph[each].timestamp_ms)
    return Answer(state.table, path, tuple(_about(each, state, settled) for each in ordered))


def _resolved(what: str, location: str) -> str:
    """Returns the whole path that is meant: a relative one is a file of this folder, or else of the table's.

    Segments `.` and `..` are walked here for local paths: no path that a table names has any.
    """
    if _WHOLE.match(what):
        if is_dotted(what):
            raise UsageError(f"{what!r} has a segment '.' or '..'", hint="name the file by its plain path")
        return what
    here = Path(os.path.abspath(what))
    if what.startswith("/"):
        return str(here) if is_dotted(what) else what
    return str(here) if here.exists() else join(location, os.path.normpath(what))


def _about(snapshot: SnapshotId, state: State, settled: Settled) -> SnapshotAnswer:
    refs = tuple(ref.name for ref in state.refs.values() if ref.snapshot == snapshot)
    reasons = settled.decision.kept.get(snapshot)
    kept = reasons is not None
    words = tuple(map(str, reasons)) if reasons is not None else _why_expired(snapshot, state, settled)
    return SnapshotAnswer(snapshot, state.graph[snapshot].timestamp_ms, kept, refs, words)


def _why_expired(snapshot: SnapshotId, state: State, settled: Settled) -> tuple[str, ...]:
    now_ms, policy = settled.decision.now_ms, settled.effective.policy
    return explain_expired(
        snapshot, state.graph, state.refs, state.current, settled.native, policy=policy, now_ms=now_ms
    )


def _needing(target: str, state: State, table_format: TableFormat, progress: Progress) -> set[SnapshotId]:
    """Returns the snapshots that reach the target, by climbing from it to the roots that name it."""
    owners: dict[str, set[SnapshotId]] = {}
    due: dict[str, File] = {}
    for snapshot, file in table_format.roots(state):
        owners.setdefault(identity(file.key), set()).add(snapshot)
        if file.opens:
            due[identity(file.key)] = file
    parents, said = _parents(due, target, table_format.expand, progress)
    totals: Counter[tuple[str, int]] = Counter(dict.fromkeys(((each, 0) for each in owners.get(target, ())), 1))
    for unit, fold, op in said:
        reaching = {each for name in _climb(unit, parents) for each in owners.get(name, ())}
        totals.update({(owner, fold): op for owner in reaching})
    needing = {snapshot_of(owner) for (owner, _), total in totals.items() if total > 0}
    return {each for each in needing if each in state.graph}


def _parents(
    due: dict[str, File], target: str, expand: Expand, progress: Progress
) -> tuple[dict[str, set[str]], list[tuple[str, int, int]]]:
    """Returns, for every unit, the units that name it; and what units say of the target. Opens each unit once."""
    parents: dict[str, set[str]] = {}
    said: list[tuple[str, int, int]] = []
    for kind in expand.order:
        opened = [file for file in due.values() if file.kind is kind]
        count = 0
        with ThreadPoolExecutor(_THREADS) as pool:
            for portion in portions(opened):
                for parent, row in _named(portion, expand(portion, pool.map), target):
                    child = row["identity"]
                    parents.setdefault(child, set()).add(parent)
                    if row["opens"]:
                        due.setdefault(child, File(FileKind(row["kind"]), row["key"], row["size"], opens=True))
                    if child == target:
                        said.append((parent, row.get("fold", 0), row.get("op", 1)))
                count += len(portion)
                progress.step(f"opening {kind}s", count, len(opened))
    return parents, said


def _named(units: list[File], found: Expanded, target: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields what matters of what units name: deeper units, and the target itself; each after who names it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = found.rows.append_column("of", pa.array(found.of))
    wanted = rows.filter(pc.or_(rows.column("opens"), pc.equal(rows.column("identity"), target)))
    names = [identity(unit.key) for unit in units]
    for row in wanted.to_pylist():
        if row["identity"] != names[row["of"]]:
            yield names[row["of"]], row


def _climb(target: str, parents: dict[str, set[str]]) -> set[str]:
    seen = {target}
    todo = [target]
    while todo:
        name = todo.pop()
        for parent in parents.get(name, ()):
            if parent not in seen:
                seen.add(parent)
                todo.append(parent)
    return seen
