"""A commit to a repository, request by request. Each of them can be made again, so the process that finds the commit
begun and not done carries it to its end.

The order:

1. Refs are made before others go. A tag that takes the place of another holds its snapshot at every moment: between the
   two the library's own expiry and collection could take what it held.
2. Notes are written before anything is taken away. They are the one thing that another firnline may have changed since
   (a hold), and they tell it while nothing that cannot be taken back has been done.
3. Refs are deleted, each only if it still points to the snapshot that the plan saw.
4. The repository is read again and the expiry foretold from what is there. If it would take a snapshot that the plan
   does not name, the commit is given up.
5. The library expires. On version 2 that is one write on condition; on version 1 one write for each line, none on
   condition. It holds what refs point to by its own look at them, which is later than any of ours.
6. What is loose above the threshold goes, one layer of ends after the other (`shedding.py`).
7. The repository is read once more, and compared with what was meant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from firnline.errors import RefusedForSafety, UnreadableMetadata
from firnline.formats.icechunk.committing.abandoning import Abandoned
from firnline.formats.icechunk.committing.cut_off import written_on_top
from firnline.formats.icechunk.committing.foretelling import Foretold, differences, foretold
from firnline.formats.icechunk.committing.library import LibraryRepository
from firnline.formats.icechunk.committing.proofs import ExpiryProof
from firnline.formats.icechunk.committing.properties import read_properties, write_properties
from firnline.formats.icechunk.committing.shedding import LooseEnds
from firnline.formats.icechunk.expiring.ancestry import RefHistory
from firnline.formats.icechunk.reading.objects import lineage_at
from firnline.formats.icechunk.reading.repository import IcechunkRepository, read_repository
from firnline.model.snapshots import Ref, RefKind
from firnline.ports.catalogs import Still
from firnline.ports.stores import ReadWrite


@dataclass(frozen=True, slots=True)
class RepositoryChange:
    """One commit, by its proof alone: a process that carries it on has nothing else. `now` was read just before;
    `still` is asked before each request that changes something. `begun_ms` is when it was begun, by the store's clock.
    """

    store: ReadWrite
    now: IcechunkRepository
    library: LibraryRepository
    proof: ExpiryProof
    still: Still
    begun_ms: int

    def carry_out(self) -> None:
        """Does what is not done yet. Raises Abandoned where another's change came between; no guard is left then."""
        loose = LooseEnds(self._read, self.library, self.proof.id, self.proof.loose, self.still)
        try:
            self._change()
            loose.shed()
        except Abandoned:
            loose.unguard()
            raise
        if wrong := differences(self.proof, RefHistory.of(self._read())):
            raise Abandoned("; ".join(wrong), serious=True)

    def _change(self) -> None:
        self._refuse_changed()
        for ref in self.proof.create:
            self._create(ref)
        self._note()
        for ref in self.proof.delete:
            self._delete(ref)
        self._refuse_cut_off()
        self._expire()

    def _read(self) -> IcechunkRepository:
        return read_repository(self.store, self.now.location)

    def _refuse_changed(self) -> None:
        """Raises Abandoned, before anything is done, where a ref that is to go has moved, a name that is to be given is
        taken, or the notes say something else: days may have passed since the commit was begun.
        """
        here = {(ref.kind, ref.name): ref.snapshot for ref in self.now.refs}
        for ref in self.proof.delete:
            self._refuse_moved(ref, here.get((ref.kind, ref.name)))
        for ref in self.proof.create:
            self._refuse_taken(ref, here.get((ref.kind, ref.name)))
            if ref.kind is RefKind.TAG and ref.name in self.now.deleted_tags:
                raise Abandoned(f"the tag {ref.name} was deleted, and its name is never given again")
        self._foretold(self.now)  # what goes with a ref too: another that led to it may be elsewhere by now
        said = read_properties(self.store, self.now.location)
        if said not in (self.proof.note, self.proof.note if self.proof.properties is None else self.proof.properties):
            raise Abandoned("firnline's notes were changed since")

    def _refuse_moved(self, ref: Ref, snapshot: str | None) -> None:
        if snapshot not in (None, ref.snapshot):
            raise Abandoned(f"the {ref.kind} {ref.name} was to be deleted at {ref.snapshot}, and is at {snapshot}")

    def _refuse_taken(self, ref: Ref, snapshot: str | None) -> None:
        if snapshot not in (None, ref.snapshot):
            raise Abandoned(f"the {ref.kind} {ref.name} was to be made at {ref.snapshot}, and is at {snapshot}")

    def _create(self, ref: Ref) -> None:
        """Makes a ref, if its snapshot's whole line is there: the library would make one that leads nowhere, and nobody
        could read the repository any more.
        """
        present = self.library.points_to(ref.kind, ref.name)
        self._refuse_taken(ref, present)
        if present is None:
            self._refuse_bare(ref)
            self.still()
            self._asked(ref, lambda: self.library.create(ref), ref.snapshot)

    def _refuse_bare(self, ref: Ref) -> None:
        here: str | None = ref.snapshot
        try:
            while here is not None and here not in self.now.snapshots:
                here = lineage_at(self.store, self.now.location, here).parent
        except UnreadableMetadata as gone:
            raise Abandoned(f"the {ref.kind} {ref.name} cannot be made: {gone}") from gone

    def _note(self) -> None:
        if self.proof.properties is not None:
            self.still()
            if not write_properties(self.store, self.now.location, self.proof.note, self.proof.properties):
                raise Abandoned("firnline's notes were changed since")

    def _delete(self, ref: Ref) -> None:
        """Deletes a ref that points to the very snapshot. The library has no condition for it, so a commit to a branch
        may come between this look and the request. One that comes later fails at its writer.
        """
        self.still()
        present = self.library.points_to(ref.kind, ref.name)
        self._refuse_moved(ref, present)
        if present is not None:
            self._asked(ref, lambda: self.library.delete(ref), None)

    def _refuse_cut_off(self) -> None:
        """Raises Abandoned for a commit that came to a branch between the last look at it and its deletion: its writer
        must hear of it as long as the snapshot is there.
        """
        if not self.proof.delete:
            return
        if lost := written_on_top(self.store, self._read(), self.proof, self.begun_ms):
            raise Abandoned(
                f"the snapshot {lost[0]} was written to a branch just as that was deleted, and no ref leads to it: if "
                "its commit was reported as done, make a branch there",
                serious=True,
            )

    def _asked(self, ref: Ref, request: Callable[[], None], meant: str | None) -> None:
        """Changes a ref. A refusal counts only if the ref is not as it was meant: the library sends a request again by
        itself, and is refused then because the first one was done.
        """
        try:
            request()
        except RefusedForSafety as refused:
            if self.library.points_to(ref.kind, ref.name) != meant:
                raise Abandoned(str(refused)) from refused

    def _foretold(self, now: IcechunkRepository) -> Foretold:
        """Returns what the rest of the commit makes of the repository. Raises Abandoned where more would go than the
        plan names.
        """
        told = foretold(now, self.proof)
        if told.refused:
            raise Abandoned(told.refused[0])
        if more := sorted(told.gone - self.proof.gone):
            raise Abandoned(f"{more[0]} would go too, which the plan does not name")
        return told

    def _expire(self) -> None:
        """Lets the library expire, if anything is left to expire and nothing goes with it that the plan keeps."""
        threshold = self.proof.threshold_us
        if threshold is None:
            return
        now = self._read() if self.proof.create or self.proof.delete else self.now
        if self._foretold(now).edits:
            self.still()
            try:
                released = self.library.expire(threshold)
            except RefusedForSafety as refused:
                raise Abandoned(str(refused)) from refused
            known = (now.snapshots[each] for each in sorted(released) if each in now.snapshots)
            if young := [each.id for each in known if each.flushed_us >= threshold]:
                raise Abandoned(f"the library expired {young[0]}, which is no older than the threshold", serious=True)
