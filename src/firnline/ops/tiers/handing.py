"""Handing snapshots to a tier: copies first, from the inmost files outward, then the metadata that names them, then
the proof that all is there; last the catalog. So whatever a tier has is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from firnline.errors import ArchiveIncomplete, RefusedForSafety
from firnline.model.files import FileKind, Root, Tally
from firnline.model.snapshots import SnapshotId
from firnline.ops.runs.presence import FEW_LOOKS, look
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.pruning import NewInTier
from firnline.ops.tiers.rewriting import Rewriting
from firnline.ops.tiers.tier import Tier, hands_over
from firnline.ports.catalogs import Still
from firnline.ports.copying import CopyFate, CopyJob, CopyOutcome
from firnline.ports.engines import Engine, Listing, ListingTooLarge, Survey, Territory
from firnline.ports.expanding import Expand
from firnline.ports.formats import State
from firnline.ports.relocating import Relocate
from firnline.tiers.mirror import Mirror

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 3
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
    def mirror(self) -> Mirror:
        return Mirror(self.tier.policy.root)

    def hand_over(self, snapshots: Set[SnapshotId], tags: Set[str]) -> HandedOver:
        """Returns the tier's table, which has these snapshots, complete. Raises ArchiveIncomplete where anything could
        not be copied or is not as it should be: then the live table must stay as it is.

        A second call copies nothing that is there. Where all copies are said to be there and yet one is missing, all
        is looked at once more, without trust in what an earlier run wrote.
        """
        before = self.tier.load(self.state.uuid)
        coming = snapshots - _ids(before)
        copied, present = self._copied(coming, pruned=True) if coming else (Tally(), Tally())
        try:
            return HandedOver(self._placed(snapshots, tags), copied, present)
        except ArchiveIncomplete:
            more, there = self._copied(snapshots, pruned=False)
        return HandedOver(self._placed(snapshots, tags), copied + more, there)

    def _copied(self, snapshots: Set[SnapshotId], *, pruned: bool) -> tuple[Tally, Tally]:
        """Returns how much was written, and how much of what was looked at lay there already."""
        work = self.work
        relocate = hands_over(work.source.format, self.state.table).relocation(self.mirror, self.tier.store)
        expand: Expand = work.source.format.expand
        chosen = NewInTier(expand, self.mirror, self.tier.store) if pruned else expand
        engine = work.choose(self.state, work.source.format, "auto")
        starts = [Root(file, True, owner) for owner, file in work.source.format.roots(self.state) if owner in snapshots]
        with closing(engine.survey(starts, chosen, Territory(None))) as survey:
            return _Copies(self, survey, relocate).all()

    def _placed(self, snapshots: Set[SnapshotId], tags: Set[str]) -> str:
        """Returns the metadata of the tier's table, which has all of them. Two runs may hand over at once, of two
        registrations of one table: who comes second adds to what the first one wrote.
        """
        table_format = hands_over(self.work.source.format, self.state.table)
        for _ in range(_MOST_TRIES):
            there = self.tier.load(self.state.uuid)
            if there is not None and snapshots <= _ids(there) and tags <= there.refs.keys():
                self.refuse_incomplete(there, snapshots)
                return there.fence
            edited = table_format.handed_over(self.state, snapshots, tags, self.mirror, there, self.work.now())
            self.still()
            self.tier.store.put_if_absent(edited.location, edited.data)
            self.refuse_incomplete(self.tier.format.load(str(self.tier.table), edited.location), snapshots)
            self.still()
            if self.tier.place(self.state.uuid, there, edited.location):
                return edited.location
        raise RefusedForSafety(f"{self.tier.table} moves whenever it is written", hint="`firnline resume` tries again")

    def refuse_incomplete(self, there: State, snapshots: Set[SnapshotId]) -> None:
        """Raises ArchiveIncomplete unless the tier's table has these snapshots, each can be walked, and every file that
        they are made of lies there with the size that they say.
        """
        absent = sorted(snapshots - _ids(there))
        if absent:
            raise _incomplete(self.tier, f"it lacks snapshot {absent[0]}")
        table_format, store = self.tier.format, self.tier.store
        engine = self.work.choose(there, table_format, "auto")
        starts = [Root(file, True, owner) for owner, file in table_format.roots(there) if owner in snapshots]
        with closing(engine.survey(starts, table_format.expand, Territory(None))) as survey:
            listing = self._listing(engine, survey, there)
            found = look(engine, survey, store, listing=listing)
            if listing is not None:
                listing.close()
        if found.faults:
            first = found.listed[0]
            raise _incomplete(self.tier, f"{first.path}: {first.problem}, and {found.faults - 1} more")

    def _listing(self, engine: Engine, survey: Survey, there: State) -> Listing | None:
        """Returns what lies in the tier's table, where that costs less than to ask for each file."""
        if survey.kept.all.files <= FEW_LOOKS:
            return None
        try:
            return engine.list(list(self.tier.ranges.split(there.location, _PIECES)), self.tier.ranges)
        except ListingTooLarge:
            return None


@dataclass
class _Copies:
    """The copies of one survey, group by group: a file is written after all that it names."""

    handing: Handing
    survey: Survey
    relocate: Relocate
    copied: Tally = field(default_factory=Tally)
    present: Tally = field(default_factory=Tally)

    def all(self) -> tuple[Tally, Tally]:
        for group in self.relocate.order:
            for kind in group:
                self._of_kind(kind)
        return self.copied, self.present

    def _of_kind(self, kind: FileKind) -> None:
        handing, tier = self.handing, self.handing.tier
        rewriting = Rewriting(handing.work.store, tier.store, self.relocate)
        copy = rewriting if kind in self.relocate.rewritten else tier.copy
        every = self.survey.kept.by_kind.get(kind, Tally()).files
        done = 0
        jobs = _jobs(self.survey.kept_batches((kind,)), handing.mirror)
        while some := list(islice(jobs, tier.many.rows)):
            handing.still()
            self._add(tier.many.copy_many(some, copy, handing.still))
            done += len(some)
            handing.work.progress.step(f"copying {kind.value} to {tier.policy.name}", done, max(done, every))

    def _add(self, outcomes: Iterable[CopyOutcome]) -> None:
        every = list(outcomes)
        failed = [each for each in every if each.fate is CopyFate.FAILED]
        if failed:
            shown = "; ".join(each.error for each in failed[:_SHOWN])
            raise _incomplete(self.handing.tier, f"{len(failed):,} files could not be copied: {shown}")
        for each in every:
            if each.fate is CopyFate.COPIED:
                self.copied += Tally(1, each.size)
            else:
                self.present += Tally(1, each.size)


def _jobs(batches: Iterable[pa.RecordBatch], mirror: Mirror) -> Iterator[CopyJob]:
    for batch in batches:
        columns: Any = (batch.column(name).to_pylist() for name in ("key", "size", "kind"))
        for key, size, kind in zip(*columns, strict=True):
            yield CopyJob(key, mirror.place(key), size, kind)


def _ids(there: State | None) -> Set[SnapshotId]:
    return frozenset() if there is None else there.graph.by_id.keys()


def _incomplete(tier: Tier, why: str) -> ArchiveIncomplete:
    return ArchiveIncomplete(
        f"{tier.table} is not complete in the tier {tier.policy.name}: {why}; the live table was not changed",
        hint="`firnline resume` tries again, and copies only what is missing",
    )
