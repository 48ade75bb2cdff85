"""The verbs that mark: tags and holds, and a policy that other engines keep to as well."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from firnline.app.moments import Age, Cutoff, end_ms
from firnline.app.naming import Snapshot, Table, snapshot_meant
from firnline.app.places import Places
from firnline.app.requests import age_ms

if TYPE_CHECKING:
    from firnline.app.verbs.answers import TableAdoption, TableHolds, TableTags
    from firnline.model.holds import Hold
    from firnline.ops.marks.adopt import Adoption
    from firnline.ops.marks.tags import Tagged


class MarkingVerbs:
    """What keeps snapshots of a table, whatever the policy says, and what tells other engines of it."""

    places: Places

    def tags(self, table: Table) -> TableTags:
        """Returns the tags of a table, each with the time until which it is kept."""
        from firnline.app.verbs.answers import TableTags
        from firnline.model.snapshots import RefKind
        from firnline.ops.marks.tags import Tagged

        state = self.places.source(table).load()
        return TableTags(Tagged.of(state, ref) for ref in state.refs.values() if ref.kind is RefKind.TAG)

    def tag(
        self, table: Table, name: str, snapshot: Snapshot | None = None, *, retain: Age | int | None = None
    ) -> Tagged:
        """Returns the tag as it was written. `snapshot` is an id or a ref, the current one if None; `retain` an age
        such as 30d, or "forever"; without it the table's own default counts.
        """
        from firnline.ops.marks.tags import add_tag

        marked = None if snapshot is None else snapshot_meant(snapshot)
        return add_tag(self.places.table_context(table), name, marked, age_ms(retain))

    def holds(self, table: Table) -> TableHolds:
        """Returns the holds on a table, also those that are over or cannot be read."""
        from firnline.app.verbs.answers import TableHolds

        return TableHolds(self.places.source(table).load().holds)

    def hold(
        self,
        table: Table,
        name: str,
        snapshot: Snapshot | None = None,
        *,
        why: str = "",
        who: str | None = None,
        until: Cutoff | None = None,
    ) -> tuple[Hold, str]:
        """Returns the hold on a snapshot, or on the whole table, and what it protects in words. `until` is a date (to
        its end in UTC), an instant, or an age from now on.
        """
        from firnline.model.holds import Hold
        from firnline.ops.marks.holds import add_hold
        from firnline.ops.marks.tags import resolve

        named = None if snapshot is None else snapshot_meant(snapshot)
        work = self.places.table_context(table)
        state = work.source.load()
        held = resolve(state, named) if named is not None and named in state.refs else named
        hold = Hold(name, who or getpass.getuser(), why, held, end_ms(until, self.places.clock()))
        return hold, add_hold(work, hold)

    def release(self, table: Table, name: str) -> None:
        """Removes a hold; what it kept then falls under the policy."""
        from firnline.ops.marks.holds import release_hold

        release_hold(self.places.table_context(table), name)

    def adoption(self, table: Table) -> TableAdoption:
        """Returns what `adopt` would write into the table's own retention. Changes nothing."""
        from firnline.app.verbs.answers import TableAdoption
        from firnline.ops.marks.adopt import adoption_of

        work = self.places.table_context(table)
        return TableAdoption(adoption_of(work, work.source.load())[1])

    def adopt(
        self, table: Table, *, confirm: Callable[[tuple[Adoption, ...]], None] = lambda wanted: None
    ) -> tuple[tuple[Adoption, ...], Sequence[str]]:
        """Writes the policy's reach into the table's own retention, so that no other engine's expiry undercuts it.
        Returns what was written, and the branches on which jobs still write that started before.

        `confirm` is shown what would be written, if there is anything; it raises to stop.
        """
        from firnline.ops.marks.adopt import adopt, adoption_of, unaware

        work = self.places.table_context(table)
        _, wanted = adoption_of(work, work.source.load())
        if not wanted:
            return (), unaware(work)
        confirm(wanted)
        return adopt(work), unaware(work)
