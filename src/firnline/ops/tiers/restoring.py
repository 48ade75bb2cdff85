"""Bringing a snapshot back from a tier: into the live table, under a ref of its own, or to any other place as a table
that stands alone. The tier keeps what it has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firnline.errors import RefusedForSafety, TableMoved, UsageError
from firnline.model.files import Tally
from firnline.model.locations import within
from firnline.model.removals import Removal
from firnline.model.snapshots import Ref, RefKind, SnapshotId
from firnline.ops.marks.tags import FOREVER
from firnline.ops.runs.change import change
from firnline.ops.runs.presence import look
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.bundling import Bundles
from firnline.ops.tiers.copied import CopiedFiles, copied_files
from firnline.ops.tiers.incomplete import incomplete
from firnline.ops.tiers.tier import Tier, hands_over
from firnline.ops.tiers.transfer import Transfer, until_stopped, walked
from firnline.plans.plan import tally_json
from firnline.ports.catalogs import Still
from firnline.ports.copying import Copy, Stored
from firnline.ports.formats import Amendment, Edited, State, UndoWindow
from firnline.ports.relocating import Place
from firnline.ports.stores import ReadWrite
from firnline.tiers.places import PlacesElsewhere


@dataclass(frozen=True, slots=True)
class Restored:
    """A snapshot that can be read again: under a ref of the live table, or by the metadata of a table of its own."""

    snapshot: SnapshotId
    source: str
    ref: Ref | None
    metadata: str | None
    copied: Tally
    present: Tally

    def to_json(self) -> dict[str, Any]:
        return {
            "snapshot": self.snapshot,
            "from": self.source,
            "ref": None if self.ref is None else self.ref.name,
            "metadata": self.metadata,
            "copied": tally_json(self.copied),
            "present": tally_json(self.present),
        }


@dataclass(frozen=True, slots=True)
class OwnPlaces:
    """Places in the folders that a live table owns, and nowhere else: a restore writes into no other table's."""

    places: Place
    owned: tuple[str, ...]

    def place(self, path: str) -> str:
        found = self.places.place(path)
        if not any(within(folder, found) for folder in self.owned):
            raise RefusedForSafety(
                f"{found} lies outside the table's own folders",
                hint="restore to a place of its own: `--to PATH`; nothing was changed",
            )
        return found

    def bounds(self, lower: str, upper: str) -> tuple[str, str]:
        return self.places.bounds(lower, upper)


@dataclass(frozen=True, slots=True)
class Restoring:
    """One snapshot of a tier's table on its way. `there` is that table; `still` is asked before each write."""

    work: TableContext
    tier: Tier
    there: State
    snapshot: SnapshotId
    still: Still

    def to_live(self, name: str, kind: RefKind) -> Restored:
        """Returns the snapshot, which the live table has again, under a ref that keeps it until it is removed.

        Raises RefusedForSafety where the table's catalog takes no old snapshot back, or a file would have to lie
        outside of the table's folders; UsageError where the name is taken.
        """
        work, live = self.work, self.work.source.load()
        if live.capabilities.undo is not UndoWindow.AFTER_COMMIT:
            raise RefusedForSafety(
                f"the catalog of {live.table} takes no old snapshot back: its sequence number lies behind",
                hint="restore to a place of its own: `--to PATH`; nothing was changed",
            )
        places = PlacesElsewhere.back_to(live.location, self.tier.policy.root, self.there.location)
        removal = hands_over(work.source.format, live.table).returning(self.there, self.snapshot, places)
        ref = Ref(name, kind, self.snapshot, FOREVER)
        _refuse_taken(live, ref)
        with copied_files() as files:
            if self.snapshot not in live.graph:
                self._copy(work.store, OwnPlaces(places, live.owned), places, self.tier.back, live.table, files)
            self._refuse_absent(live, removal)
            edit = self._edit(live.uuid, removal, ref)
            change(work.source, edit, lambda base, edited, attempt: self.still(), still=self.still)
            return Restored(self.snapshot, self.there.table, ref, None, files.copied, files.present)

    def to_place(self, store: ReadWrite, copy: Copy, folder: str) -> Restored:
        """Returns the snapshot as a table of its own below a folder, in no catalog: engines open it by its metadata.

        Raises UsageError where the folder and the live table's, or the tier's, lie in each other.
        """
        for other in (*self.work.source.load().owned, self.tier.policy.root):
            if within(other, f"{folder}/x") or within(folder, f"{other}/x"):
                raise UsageError(f"{folder} and {other} lie in each other", hint="name a folder of its own")
        places = PlacesElsewhere(self.tier.policy.root, folder.rstrip("/"))
        table_format = hands_over(self.tier.format, self.there.table)
        tags = {name for name, ref in self.there.refs.items() if ref.snapshot == self.snapshot and name != "main"}
        with copied_files() as files:
            self._copy(store, places, places, copy, folder, files)
            edited = table_format.handed_over(self.there, {self.snapshot}, tags, places, None, self.work.now())
            self.still()
            store.put_if_absent(edited.location, edited.data)
            return Restored(self.snapshot, self.there.table, None, edited.location, files.copied, files.present)

    def bundles(self, bundles: Bundles) -> dict[str, Stored]:
        """Returns the bundles in which files of the snapshot lie, by their names."""
        tier = self.tier
        with walked(self.work, tier.format, self.there, {self.snapshot}) as (_, survey):
            return bundles.rather_whole(survey, tier.leaves, tier.damaged)

    def _copy(self, target: ReadWrite, into: Place, named: Place, copy: Copy, to: str, files: CopiedFiles) -> None:
        """Copies all files of the snapshot, `into` their places; within files, others are `named` by theirs."""
        tier, work = self.tier, self.work
        relocate = hands_over(tier.format, self.there.table).relocation(named, target)
        still = until_stopped(work, self.still)
        transfer = Transfer(tier.store, target, into, copy, relocate, tier.many, still, work.progress, to)
        with walked(work, tier.format, self.there, {self.snapshot}) as (_, survey):
            transfer.all_of(survey, files)

    def _refuse_absent(self, live: State, removal: Removal) -> None:
        """Raises ArchiveIncomplete unless every file of the snapshot lies where the live table will look for it."""
        work = self.work
        state = work.source.format.with_removal(live, removal)
        with walked(work, work.source.format, state, {self.snapshot}) as (engine, survey):
            found = look(engine, survey, work.store)
        if found.faults:
            raise incomplete(live.table, f"{found.listed[0].path}: {found.listed[0].problem}")

    def _refuse_changed(self) -> None:
        """Raises TableMoved where the tier does not have the snapshot any more as it was copied.

        1. This restore copies a snapshot.
        2. An erasure takes a file out of it, live and in the tier.
        3. The restore commits, and the live table has the file again.
        """
        there = self.tier.find()
        if there is None or self._roots(there) != self._roots(self.there):
            raise TableMoved(f"{self.snapshot} of {self.there.table} is not as it was copied", hint="restore it again")

    def _roots(self, there: State) -> set[str]:
        return {file.key for owner, file in self.tier.format.roots(there) if owner == self.snapshot and file.opens}

    def _edit(self, uuid: str, removal: Removal, ref: Ref) -> Callable[[State], Edited | None]:
        def edit(state: State) -> Edited | None:
            if state.uuid != uuid:
                raise TableMoved(f"{state.table} is another table now: found {state.uuid}", hint="restore it again")
            _refuse_taken(state, ref)
            if state.refs.get(ref.name) == ref:
                return None
            self._refuse_changed()
            return self.work.source.format.restore(state, removal, self.work.now(), amendment=Amendment(refs=(ref,)))

        return edit


def _refuse_taken(state: State, ref: Ref) -> None:
    present = state.refs.get(ref.name)
    if present is not None and present != ref:
        raise UsageError(
            f"{state.table} has a {present.kind} {ref.name} at {present.snapshot} already", hint="choose another name"
        )
