"""Reading what a table remembers: its snapshots, live and expired, the ledger of its runs, and the days they make."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError, UnreadableMetadata, UsageError
from firnline.extras import how_to_get
from firnline.history.ledger import End, ends_folder, snapshots_folder
from firnline.history.listing import Entry, SnapshotRow, rows_of
from firnline.history.opening import History, count_until, expired_entries, open_history
from firnline.journal.parts import ListAndGet, part_keys, read_part
from firnline.ops.history.timeline import BANDS, Span, Timeline, svg_of
from firnline.ports.abilities import HistoryField
from firnline.ports.catalogs import TableSource
from firnline.ports.formats import State, TableFormat
from firnline.ports.stores import Get

if TYPE_CHECKING:
    import pyarrow as pa

_PLOTS = (".svg", ".png")


def history_of(source: TableSource, state: State, store: Get) -> History:
    """Returns which objects hold the table's expired snapshots: for those who read them in parts, on any machine."""
    return open_history(store, state, declared_history(source.format, state))


def count_forgotten(source: TableSource, state: State, store: Get, bound_ms: int) -> int:
    """Returns how many of the expired snapshots that a table remembers are not younger than the bound.

    Raises UnreadableMetadata where the history is missing, damaged or another table's.
    """
    return count_until(store, history_of(source, state, store), bound_ms)


def declared_history(table_format: TableFormat, state: State) -> str | None:
    """Returns what the document's own field says of where the history lies; None for a format without one."""
    return table_format.declared_history(state) if isinstance(table_format, HistoryField) else None


def expired_snapshots(source: TableSource, state: State, store: Get) -> Iterator[Entry]:
    """Yields the expired snapshots as they stood in the metadata. Reads nothing before the first is asked for.

    Raises UnreadableMetadata where the history is missing, damaged or another table's.
    """
    yield from expired_entries(store, history_of(source, state, store), frozenset(state.graph.by_id))


def all_snapshots(source: TableSource, state: State, store: Get) -> Iterator[SnapshotRow]:
    """Yields the live snapshots, which need nothing but the table, and then those that expired."""
    yield from rows_of(source.format.snapshot_objects(state), expired=False)
    yield from rows_of(expired_snapshots(source, state, store), expired=True)


def ledger_snapshots(store: ListAndGet, root: str) -> Iterator[pa.Table]:
    """Yields what each remembered run expired, a table for each, in the order of planning."""
    return (read_part(store, key) for key in part_keys(store, snapshots_folder(root)))


def ledger_ends(store: ListAndGet, root: str) -> Iterator[pa.Table]:
    """Yields how each remembered run ended, a table of one row for each."""
    return (read_part(store, key) for key in part_keys(store, ends_folder(root)))


def timeline_of(
    source: TableSource, state: State, store: ListAndGet, root: str, span: Span
) -> tuple[Timeline, UnreadableMetadata | None]:
    """Returns the table's days, and what of its history could not be read: live snapshots are there in any case."""
    timeline = Timeline(state.table, span)
    try:
        for row in all_snapshots(source, state, store):
            timeline.commit(row.committed_at_ms, row.summary, expired=row.expired)
        _add_ledger(timeline, store, root)
    except UnreadableMetadata as trouble:
        return timeline, trouble
    return timeline, None


def _add_ledger(timeline: Timeline, store: ListAndGet, root: str) -> None:
    ends = [row for table in ledger_ends(store, root) for row in table.to_pylist()]
    undone = {row["run"] for row in ends if row["end"] == End.UNDONE}
    for table in ledger_snapshots(store, root):
        first = table.slice(0, 1).to_pylist()[0]
        if first["run"] not in undone:
            timeline.expiry(round(first["expired_at"].timestamp() * 1000), len(table))
    for row in ends:
        deleted = dict(row["outcomes"]).get("deleted")
        if deleted is not None:
            timeline.purge(round(row["ended_at"].timestamp() * 1000), deleted["files"], deleted["bytes"])


def check_plot_name(out: Path) -> None:
    """Raises UsageError, before any history is read, unless a picture can be drawn under this name."""
    if out.suffix not in _PLOTS:
        raise UsageError(f"cannot draw {out}", hint="a plot ends in .svg or .png")
    if not out.parent.is_dir():
        raise UsageError(f"no such folder: {out.parent}", hint="make it first")
    if out.suffix == ".png" and find_spec("matplotlib") is None:
        raise UsageError("a PNG needs matplotlib", hint=f"{how_to_get('plot')}, or write an .svg")


def write_plot(timeline: Timeline, out: Path) -> None:
    """Writes the picture: SVG by itself, PNG through matplotlib."""
    check_plot_name(out)
    try:
        if out.suffix == ".svg":
            out.write_text(svg_of(timeline), encoding="utf-8")
        else:
            _write_png(timeline, out)
    except OSError as problem:
        raise FirnlineError(f"cannot write {out}: {problem.strerror or problem}", hint="name another file") from problem


def _write_png(timeline: Timeline, out: Path) -> None:
    from matplotlib.figure import Figure

    days = timeline.days()
    places = [date.fromisoformat(day.day).toordinal() for day in days]
    picture = Figure(figsize=(12, 2 * len(BANDS)), layout="constrained")
    for place, band in enumerate(BANDS, 1):
        axes = picture.add_subplot(len(BANDS), 1, place, title=band.title)
        axes.bar(places, [band.up(day) for day in days])
        axes.bar(places, [-band.down(day) for day in days])
        axes.set_xticks([*places[:1], *places[1:][-1:]], [each.day for each in (*days[:1], *days[1:][-1:])])
    picture.suptitle(timeline.table)
    picture.savefig(out)
