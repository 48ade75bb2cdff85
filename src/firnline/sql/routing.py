"""Versions that a live table has no more: a query for one is answered by the tier that has it, and says so."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from firnline.app.places import Places
from firnline.errors import UsageError
from firnline.foreign import harmless
from firnline.formats.registry import kit_named
from firnline.model.snapshots import SnapshotId
from firnline.model.times import tell_instant
from firnline.ops.tiers.finding import histories
from firnline.ports.formats import State
from firnline.ports.inspect import Inspect
from firnline.stores.wrappers.read_only import ReadOnly

Find = Callable[[Inspect, State], SnapshotId]
"""Returns the snapshot of a table that a query asks for. Raises UsageError if it has none."""


@dataclass(frozen=True, slots=True)
class Routes:
    """Finds versions. `may_route`: a query may be answered by a tier."""

    places: Places
    may_route: bool = True

    def version(self, state: State, find: Find) -> tuple[State, SnapshotId]:
        """Returns the table that has the version, and its snapshot there: the live one, or one of a tier.

        Raises UsageError where none has it; and where only a tier has and no query may be routed, with its name.
        """
        place = self.places.place(state.table)
        try:
            return state, find(kit_named(state.format).inspect(ReadOnly(place.store)), state)
        except UsageError as problem:
            routed = self._in_tiers(state, find)
            if routed is None:
                raise
            there, snapshot = routed
            if not self.may_route:
                raise UsageError(problem.message, hint=f"{there.table} has it, as snapshot {snapshot}") from None
            at = tell_instant(there.graph[snapshot].timestamp_ms)
            said = f"{state.table} has that version no more: read from {there.table}, snapshot {snapshot} of {at}"
            print(harmless(said), file=sys.stderr, flush=True)
            return routed

    def _in_tiers(self, state: State, find: Find) -> tuple[State, SnapshotId] | None:
        for tier, there in histories(self.places.table_context(state.table), state):
            try:
                found = find(kit_named(there.format).inspect(ReadOnly(tier.store)), there)
            except UsageError:
                continue
            if tier.bundles is not None:
                raise UsageError(
                    f"that version of {state.table} sleeps in {there.table}, as snapshot {found}",
                    hint=f"`firnline restore {state.table} {found} --to … --case … --by …` brings it back",
                )
            return there, found
        return None
