"""Looking at one table: what `check` and `history` read."""

from __future__ import annotations

from firnline.app.naming import Table
from firnline.app.places import Places
from firnline.app.tiers import packed_files
from firnline.errors import UnreadableMetadata
from firnline.history.names import pointer_of
from firnline.ops.history.reading import declared_history, timeline_of
from firnline.ops.history.timeline import Span, Timeline
from firnline.ops.history.unremembered import add_unremembered
from firnline.ops.looking.check import Checked, check
from firnline.ops.runs.decision import policy_in_force
from firnline.ops.table.context import TableContext
from firnline.plans.request import Request
from firnline.ports.formats import State


def check_table(places: Places, table: Table) -> Checked:
    """Returns whether every file that the table's snapshots need exists, with its size."""
    place = places.place(table)
    packed = packed_files(places, place.source)
    if packed is not None:
        return check(place.source, packed, places.engines.choose, None)
    return check(place.source, place.store, places.engines.choose, places.stores.ranges(place.settings))


def timeline_of_table(places: Places, table: Table, span: Span) -> tuple[Timeline, UnreadableMetadata | None]:
    """Returns the table's days, and what of its history could not be read."""
    work = places.table_context(table)
    state = work.source.load()
    timeline, trouble = timeline_of(work.source, state, work.store, work.root(state), span)
    timeline.remembers = _remembers(work, state)
    add_unremembered(timeline, work, state)
    return timeline, trouble


def _remembers(work: TableContext, state: State) -> bool:
    """Tells whether the table remembers what expires, by its policy; or remembers some, of a run that was told to."""
    if policy_in_force(state, work.source.name, work.config, Request()).history.value is not None:
        return True
    return pointer_of(state) is not None or declared_history(work.source.format, state) is not None
