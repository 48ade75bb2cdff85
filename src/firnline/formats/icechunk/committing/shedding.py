"""Taking out what no ref leads to and no threshold takes alone, by the library's own expiry (`loose_ends.py`).

A guard is a branch on a snapshot that stays, for the time of the commit. It has the commit's id in its name, so a
process that carries the commit on knows the guards of the one before, and deletes them in the end. A repository with
guards reads as without: they lead to nothing that was not there, and hold it against every expiry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from firnline.errors import RefusedForSafety
from firnline.formats.icechunk.committing.abandoning import Abandoned
from firnline.formats.icechunk.committing.library import LibraryRepository
from firnline.formats.icechunk.expiring.ancestry import RefHistory
from firnline.formats.icechunk.expiring.loose_ends import Layer, next_layer, older_than
from firnline.formats.icechunk.reading.repository import IcechunkRepository
from firnline.model.snapshots import Ref, RefKind
from firnline.ports.catalogs import Still


@dataclass(frozen=True, slots=True)
class LooseEnds:
    """The loose snapshots `due` to go in one commit. `still` is asked before each request that changes something."""

    read: Callable[[], IcechunkRepository]
    library: LibraryRepository
    commit: str
    due: frozenset[str]
    still: Still

    def shed(self) -> None:
        """Takes them out, and leaves no guard. One that a ref leads to by now stays, as does what another goes on from.

        Raises Abandoned where others would go, too.
        """
        if not self.due:
            return
        before: Layer | None = None
        while layer := self._next():
            if layer == before:
                raise Abandoned("what was to go stays, although no ref leads to it: another holds it", serious=True)
            self._take(layer)
            before = layer
        self.unguard()

    def unguard(self) -> None:
        """Deletes the guards. Raises Abandoned for one to which somewhat was committed: that is a branch of others now,
        and stays.
        """
        moved = [ref.name for ref in self._guards() if not self._dropped(ref)] if self.due else []
        if moved:
            raise Abandoned(f"the branch {moved[0]} was firnline's own, and was moved: delete it by hand", serious=True)

    def _history(self) -> RefHistory:
        return RefHistory.of(self.read())

    def _guards(self, history: RefHistory | None = None) -> list[Ref]:
        return [ref for ref in (history or self._history()).refs if self._is_guard(ref)]

    def _is_guard(self, ref: Ref) -> bool:
        return ref.kind is RefKind.BRANCH and ref.name.startswith(self._name(""))

    def _name(self, snapshot: str) -> str:
        return f"firnline-{self.commit}-{snapshot}"

    def _next(self) -> Layer | None:
        history = self._history()
        return next_layer(history.without(refs=self._guards(history)), self.due)

    def _take(self, layer: Layer) -> None:
        guards = self._guards()
        for snapshot in sorted(layer.guarded - {ref.snapshot for ref in guards}):
            self._guard(snapshot)
        for ref in guards:
            if ref.snapshot in layer.ends:
                self._dropped(ref)
        self._expire(layer)

    def _guard(self, snapshot: str) -> None:
        """Makes a guard. One that is there was made by a request that the library sent twice."""
        ref = Ref(self._name(snapshot), RefKind.BRANCH, snapshot)
        self.still()
        try:
            self.library.create(ref)
        except RefusedForSafety as refused:
            if self.library.points_to(ref.kind, ref.name) != snapshot:
                raise Abandoned(str(refused)) from refused

    def _dropped(self, ref: Ref) -> bool:
        """Deletes a guard; False if it points to another snapshot than its name says."""
        present = self.library.points_to(ref.kind, ref.name)
        if present is None:
            return True
        if self._name(present) != ref.name:
            return False
        self.still()
        try:
            self.library.delete(ref)
        except RefusedForSafety as refused:
            if self.library.points_to(ref.kind, ref.name) is not None:
                raise Abandoned(str(refused)) from refused
        return True

    def _expire(self, layer: Layer) -> None:
        """Lets the library expire the ends of a layer. The guards hold the rest, whatever refs others move from here
        on; a snapshot that is written from here on is younger than the threshold.
        """
        history = self._history()
        held = {ref.snapshot for ref in self._guards(history)}
        if more := sorted(older_than(history, layer.threshold_us) - held - layer.ends):
            raise Abandoned(f"{more[0]} would go too, which the plan does not name")
        self.still()
        try:
            released = self.library.expire(layer.threshold_us)
        except RefusedForSafety as refused:
            raise Abandoned(str(refused)) from refused
        if more := sorted(released - layer.ends):
            raise Abandoned(f"the library expired {more[0]}, which a branch was to hold", serious=True)
