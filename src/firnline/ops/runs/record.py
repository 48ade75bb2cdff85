"""Saving a plan: the written list first, the plan last, so that a run exists only when its record is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from firnline.journal.events import EventStore, Sealing
from firnline.journal.layout import RecordFolder, RunId
from firnline.journal.parts import PartWriter, PutAndGet, Seals, part_prefix
from firnline.journal.runs import put_plan
from firnline.model.files import FileKind
from firnline.ops.runs.plan import Planned
from firnline.plans.plan import Plan

if TYPE_CHECKING:
    import pyarrow as pa

    from firnline.ports.formats import TableFormat


def save_plan(
    planned: Planned,
    table_format: TableFormat,
    store: EventStore,
    root: str,
    sealing: Sealing,
    now_ms: int,
    enter: Callable[[RunId], None],
    *,
    address: str,
    meant: bool,
) -> Plan:
    """Returns the plan with the run it was saved as. Touches nothing but the run's own new folder, and
    the list of unfinished runs by `enter`. `address` is that of the table's catalog.

    `meant`: the operator asked for the run itself, so a process that resumes may commit it; a plan to be looked at
    waits.

    What was searched for is in that folder already, and is listed after what expires.
    """
    search = None if planned.search is None else planned.search()
    run = RunId.new(planned.plan.table, now_ms) if search is None else search.run
    folder = RecordFolder(root, run.stamp)
    seals: dict[str, Seals] = {"victims": {}, "walked": {}}
    if planned.survey is not None:
        seals["victims"] = write_victims(
            planned.survey.victim_batches(), table_format.purge_order, store, folder.victims
        )
        walked = planned.survey.kept_batches(table_format.expand.order)
        seals["walked"] = write_units(walked, store, folder.walked)
    plan = replace(planned.plan, run=str(run))
    asked = {"request": planned.request.to_json(), "meant": meant, "address": address}
    record = {**plan.to_json(), **asked, "orphans": None, "parts": seals}
    if search is not None:
        parts = {**seals, **search.seals, "victims": {**seals["victims"], **search.seals["victims"]}}
        record |= {"orphans": {**search.plan.found_json(), "scope": search.scope}, "parts": parts}
    put_plan(store, folder, record, now_ms, sealing, partial(enter, run))
    return plan


def write_victims(
    batches: Iterator[pa.RecordBatch],
    order: tuple[FileKind, ...],
    store: PutAndGet,
    folder: str,
    *,
    searched: bool = False,
) -> Seals:
    """Writes the list in the order of deletion: parts are named by their kind's place in it. What was searched for
    comes after whatever else the list may have.
    """
    writers = {kind: PartWriter(store, folder, part_prefix(place, searched)) for place, kind in enumerate(order)}
    for batch in batches:
        for kind in set(batch.column("kind").to_pylist()):
            writers[FileKind(kind)].add(_of_kind(batch, kind))
    for writer in writers.values():
        writer.flush()
    return {name: sealed for writer in writers.values() for name, sealed in writer.seals.items()}


def write_units(batches: Iterator[pa.RecordBatch], store: PutAndGet, folder: str) -> Seals:
    """Writes the units that the plan opened as needed: a purge need not walk them again, they never change."""
    writer = PartWriter(store, folder)
    for batch in batches:
        writer.add(batch)
    writer.flush()
    return writer.seals


def _of_kind(batch: pa.RecordBatch, kind: str) -> pa.RecordBatch:
    import pyarrow.compute as pc

    return batch.filter(pc.equal(batch.column("kind"), kind))
