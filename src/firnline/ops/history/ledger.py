"""Writing the ledger: what a run expired and why, with its commit; and how it ended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from firnline.errors import AlreadyExists, FirnlineError, TableMoved
from firnline.history.ledger import End, RunFacts, end_row, ends_folder, snapshot_rows, snapshots_folder
from firnline.history.listing import SnapshotRow, rows_of
from firnline.journal.outcomes import outcome_totals
from firnline.journal.parts import as_parquet
from firnline.journal.runs import Run
from firnline.model.locations import join
from firnline.model.removals import Removal
from firnline.ops.runs.decision import decide_now
from firnline.ops.table.context import TableContext
from firnline.policy.readers import ReaderNeeds
from firnline.policy.why import explain_expired
from firnline.ports.discard import OwnName, own_keys
from firnline.ports.formats import State

if TYPE_CHECKING:
    import pyarrow as pa

MOST_STEPS = 4_000_000
"""Snapshots of the table times snapshots that went: up to here each gets reasons of its own, above it all get one."""


def note_expired(work: TableContext, run: Run, detail: Mapping[str, Any], at_ms: int) -> None:
    """Writes a row for each snapshot of the commit, where the run remembers, and drops the account of runs that are
    older than the history. A second call changes nothing.
    """
    noted = detail.get("history")
    if noted is None:
        return
    rows = list(rows_of(Removal.from_json(detail["removal"]).snapshots, expired=True))
    if rows:
        _note_snapshots(work, run, detail, at_ms, rows)
    _drop_old(work, run.folder.root, noted["bound_ms"])


def _note_snapshots(
    work: TableContext, run: Run, detail: Mapping[str, Any], at_ms: int, rows: Sequence[SnapshotRow]
) -> None:
    by_kind = run.plan["victims"]["by_kind"].items()
    facts = RunFacts(
        run=str(run.id),
        table=run.plan["table"],
        uuid=run.uuid,
        policy=run.plan["policy"],
        expired_at_ms=at_ms,
        victims={kind: (each["files"], each["bytes"]) for kind, each in by_kind},
        archived=_archived(run),
    )
    _put_once(work, snapshots_folder(run.folder.root), run, snapshot_rows(facts, rows, _lost(work, run, detail, rows)))


def _archived(run: Run) -> dict[str, str]:
    said = {} if run.archived is None else run.archived.detail
    return dict.fromkeys(said.get("snapshots", ()), said.get("metadata", ""))


def note_end(work: TableContext, run: Run, end: End) -> None:
    """Writes how a remembered run ended. A second call changes nothing."""
    if run.committed is None or run.committed.detail.get("history") is None:
        return
    totals = outcome_totals(work.store, run.folder)
    outcomes = {name: (tally.files, tally.bytes) for name, tally in totals.items()}
    table = end_row(str(run.id), run.plan["table"], end, work.now(), outcomes)
    _put_once(work, ends_folder(run.folder.root), run, table)


def _put_once(work: TableContext, folder: str, run: Run, table: pa.Table) -> None:
    with suppress(AlreadyExists):  # the same account, from before a crash
        work.store.put_if_absent(join(folder, f"{run.id.stamp}.parquet"), as_parquet(table))


def _lost(
    work: TableContext, run: Run, detail: Mapping[str, Any], rows: Sequence[SnapshotRow]
) -> Mapping[str, Sequence[str]]:
    """Returns why nothing kept each snapshot, told from the version that the commit was made from.

    Where that cannot be told any more, the ledger goes without: a run must not stop for it.
    """
    try:
        base = _base(work, run, detail)
        at_ms, name = run.events[-1].at_ms, work.source.name
        settled = decide_now(
            work.source.format, base, name, work.config, run.request, at_ms, (), ReaderNeeds(base.pins)
        )
    except FirnlineError:
        return {}
    went = set(settled.decision.expired)
    if len(rows) * len(base.graph) > MOST_STEPS:
        return {row.snapshot_id: (f"not kept by {settled.policy_text}",) for row in rows if row.snapshot_id in went}
    return {
        row.snapshot_id: explain_expired(
            row.snapshot_id, base.graph, base.refs, base.current, settled.native,
            policy=settled.effective.policy, now_ms=settled.decision.now_ms,
        )
        for row in rows
        if row.snapshot_id in went
    }  # fmt: skip


def _base(work: TableContext, run: Run, detail: Mapping[str, Any]) -> State:
    """Returns the version that the commit was made from. Where a format keeps no versions: the present one with what
    was taken out put back.
    """
    table_format = work.source.format
    try:
        return table_format.load(run.plan["table"], detail["base"])
    except TableMoved:
        return table_format.with_removal(work.source.load(), Removal.from_json(detail["removal"]))


def _drop_old(work: TableContext, root: str, bound_ms: int) -> None:
    """Discards the account of runs that were planned before the bound: all that they expired is older still."""
    if work.discard is None:
        return
    for folder in (snapshots_folder(root), ends_folder(root)):
        accounts = own_keys(folder, work.store.list(folder), OwnName.ACCOUNT)
        work.discard.discard([each for each in accounts if _planned_ms(each.name) <= bound_ms])


def _planned_ms(name: str) -> float:
    """Returns when the run of this name was planned; a name that does not tell is never old."""
    try:
        return datetime.strptime(name[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp() * 1000
    except ValueError:
        return math.inf
