"""Handing snapshots to a tier: copies first, from the inmost files outward, then the metadata that names them, then
the proof that all is there; last the catalog. So whatever a tier has is complete.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from itertools import islice

from firnline.errors import ArchiveIncomplete, RefusedForSafety
from firnline.model.files import Tally
from firnline.model.snapshots import SnapshotId
from firnline.ops.runs.presence import FEW_LOOKS, look
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.copied import CopiedFiles, copied_files
from firnline.ops.tiers.incomplete import incomplete, refuse_failed
from firnline.ops.tiers.leftovers import left_behind
from firnline.ops.tiers.pruning import NewInTier
from firnline.ops.tiers.tier import Tier, hands_over
from firnline.ops.tiers.transfer import Transfer, until_stopped, walked
from firnline.ports.catalogs import Still
from firnline.ports.engines import Engine, Listing, ListingTooLarge, Survey
from firnline.ports.expanding import Expand
from firnline.ports.formats import State
from firnline.tiers.places import TierPlaces

_MOST_TRIES = 16
_PIECES = 64


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The tier's table with what was handed over: where its metadata lies, and how much was copied for it."""

    metadata: str
    copied: Tally
    present: Tally


@dataclass(frozen=True, slots=True)
class Handing:
    """One table's snapshots on their way to a tier. `still` is asked before each write, and raises if this process may
    not go on.
    """

    work: TableContext
    state: State
    tier: Tier
    still: Still

    @property
    def places(self) -> TierPlaces:
        return TierPlaces(self.tier.policy.root)

    def hand_over(self, snapshots: Set[SnapshotId], tags: Set[str], *, doubting: bool = False) -> HandedOver:
        """Returns the tier's table, which has these snapshots, complete. Raises ArchiveIncomplete where anything could
        not be copied or is not as it should be: then the live table must stay as it is.

        A second call copies nothing that is there. Where all copies are said to be there and yet one is missing, all
        is looked at once more, without trust in what an earlier run wrote; and at once where the caller is `doubting`.
        """
        self.tier.refuse_unbundled()
        coming = snapshots - _ids(self.tier.load())
        with copied_files() as files:
            self._copy(snapshots if doubting else coming, files, pruned=not doubting)
            try:
                metadata = self._placed(snapshots, tags, files)
            except ArchiveIncomplete:
                self._copy(snapshots, files, pruned=False)
                metadata = self._placed(snapshots, tags, files)
            return HandedOver(metadata, files.copied, files.present)

    def _copy(self, snapshots: Set[SnapshotId], files: CopiedFiles, *, pruned: bool) -> None:
        """Copies all that the snapshots are made of; where `pruned`, but for what manifests name that the tier has."""
        if not snapshots:
            return
        work = self.work
        relocate = hands_over(work.source.format, self.state.table).relocation(self.places, self.tier.store)
        expand: Expand = work.source.format.expand
        chosen = NewInTier(expand, self.places, self.tier.store) if pruned else expand
        transfer = Transfer(
            work.store, self.tier.store, self.places, self.tier.copy, relocate, self.tier.many,
            until_stopped(work, self.still), work.progress, f"the tier {self.tier.policy.name}", self.tier.bundles,
        )  # fmt: skip
        with walked(work, work.source.format, self.state, snapshots, chosen) as (_, survey):
            transfer.all_of(survey, files)

    def _placed(self, snapshots: Set[SnapshotId], tags: Set[str], files: CopiedFiles) -> str:
        """Returns the metadata of the tier's table, which has all of them, and keeps them.

        1. The tier's table is under policy itself: a purge of it has looked at it, and sends its deletes.
        2. This run finds one of these files there, and places a snapshot with it.
        3. The deletes arrive.

        A purge that begins later sees the snapshot and spares its files; one that ended meanwhile has to be doubted.
        """
        purges = self.tier.purges()
        metadata = self._placed_once(snapshots, tags, files)
        if self.tier.purges() != purges:
            self.refuse_incomplete(self.tier.format.load(str(self.tier.table), metadata), snapshots)
        return metadata

    def _placed_once(self, snapshots: Set[SnapshotId], tags: Set[str], files: CopiedFiles) -> str:
        """Returns the metadata of the tier's table, which has all of them. Two runs may hand over at once, of two
        registrations of one table: who comes second adds to what the first one wrote.
        """
        table_format = hands_over(self.work.source.format, self.state.table)
        for _ in range(_MOST_TRIES):
            there = self.tier.load()
            if there is not None and snapshots <= _ids(there) and self._has_tags(there, tags):
                self.refuse_incomplete(there, snapshots)
                return there.fence
            before = there or left_behind(self.tier, self.state)
            edited = table_format.handed_over(self.state, snapshots, tags, self.places, before, self.work.now())
            self.still()
            self.tier.store.put_if_absent(edited.location, edited.data)
            coming = self.tier.format.load(str(self.tier.table), edited.location)
            self.refuse_incomplete(coming, snapshots if there is before else _ids(coming))
            self._refuse_changed(files)
            self.still()
            if self.tier.place(there, edited.location):
                return edited.location
        raise RefusedForSafety(f"{self.tier.table} moves whenever it is written", hint="`firnline resume` tries again")

    def _has_tags(self, there: State, tags: Set[str]) -> bool:
        """Tells whether each has its snapshot there, under its own name or, where that was taken, a longer one."""
        named = {(ref.snapshot, name) for name, ref in there.refs.items()}
        wanted = ((self.state.refs[name].snapshot, name) for name in tags)
        return all({(snapshot, name), (snapshot, f"{name}-{snapshot}")} & named for snapshot, name in wanted)

    def _refuse_changed(self, files: CopiedFiles) -> None:
        """Raises ArchiveIncomplete where a copy is not any more what it was seen to be."""
        copies, tier = files.stored(), self.tier
        many = tier.many(files.copied.files + files.present.files)
        while some := list(islice(copies, many.rows)):
            refuse_failed(many.verify_many(some, tier.verify), str(tier.table), "are not as they were copied")

    def refuse_incomplete(self, there: State, snapshots: Set[SnapshotId]) -> None:
        """Raises ArchiveIncomplete unless the tier's table has these snapshots, each can be walked, and every file that
        they are made of lies there with the size that they say; where files lie in bundles, each of these with its
        checksum.
        """
        absent = sorted(snapshots - _ids(there))
        if absent:
            raise incomplete(str(self.tier.table), f"it lacks snapshot {absent[0]}")
        with walked(self.work, self.tier.format, there, snapshots) as (engine, survey):
            listing = self._listing(engine, survey, there)
            found = look(engine, survey, self.tier.store, listing=listing)
            if listing is not None:
                listing.close()
            if not found.faults and self.tier.bundles is not None:
                self.tier.bundles.refuse_damaged(survey, self.tier.leaves, self.tier.damaged)
        if found.faults:
            first = found.listed[0]
            raise incomplete(str(self.tier.table), f"{first.path}: {first.problem}, and {found.faults - 1} more")

    def _listing(self, engine: Engine, survey: Survey, there: State) -> Listing | None:
        """Returns what lies in the tier's table, where that costs less than to ask for each file: members of bundles
        cost nothing, since the index tells of them.
        """
        if survey.kept.all.files <= FEW_LOOKS or self.tier.bundles is not None:
            return None
        try:
            return engine.list(list(self.tier.ranges.split(there.location, _PIECES)), self.tier.ranges)
        except ListingTooLarge:
            return None


def _ids(there: State | None) -> Set[SnapshotId]:
    return frozenset() if there is None else there.graph.by_id.keys()
