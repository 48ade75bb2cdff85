"""Erasing files from bundles of a deep tier: all else that they hold is packed anew, and they go.

| crash after | what it leaves | what the next try does |
|---|---|---|
| the note | bundles that the index names | packs their members anew |
| a new bundle | one that nothing but the note names | removes it, and packs its members once more |
| its segment | files that lie in two bundles | packs them once more |
| the index | bundles that nothing but the note names | removes them |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from uuid import uuid4

from firnline.errors import ArchiveIncomplete, StoreError, UnreadableMetadata
from firnline.model.locations import identity, join
from firnline.model.times import DAY_MS, format_instant
from firnline.ops.tiers.bundling import Bundles
from firnline.ops.tiers.waking import Inquiry
from firnline.ports.catalogs import Still
from firnline.ports.copying import Stored
from firnline.ports.discard import Discard, OwnKey
from firnline.ports.packing import RepackJob
from firnline.ports.stores import ReadWrite, is_there
from firnline.tiers.bundles.index import BUNDLE

_NOTES, _BEGUN, _DONE = "erasures", ".begun.json", ".done.json"


class _BegunNote(NamedTuple):
    """What was written down before anything went: which files, by their places, the bundles that held them, and those
    that were to be written in the place of these.
    """

    stem: str
    files: list[str]
    bundles: list[str]
    new: list[str]


@dataclass(frozen=True, slots=True)
class Repacking:
    """Files, by the identities of their places in a tier, that shall go from its bundles. `store` is the tier's."""

    bundles: Bundles
    store: ReadWrite
    discard: Discard
    files: frozenset[str]

    def packed(self) -> set[str]:
        """Returns the places of the files that lie in bundles."""
        return self.bundles.index.spelled(self.files)

    def due(self) -> dict[str, Stored]:
        """Returns the bundles that hold any of the files, by their names; they must be readable before `erase`."""
        return self.bundles.index.holding(sorted(self.packed()))

    def left(self) -> list[str]:
        """Returns the bundles that held one of the files, and whose removal was begun and not ended."""
        return sorted({each for note in self._about() for each in note.bundles if is_there(self.store, each)})

    def known(self) -> set[str]:
        """Returns the places of the files that lie in bundles, or whose removal was begun and not ended."""
        return self.packed().union(*(note.files for note in self._about()))

    def _about(self) -> list[_BegunNote]:
        return [note for note in self._begun() if self.files & set(map(identity, note.files))]

    def erase(self, asked: Inquiry, now: Callable[[], int], still: Still, refuse_unfound: Callable[[], None]) -> None:
        """Packs all other members anew, and removes the bundles that hold the files, or held any that were erased by
        one who was stopped. `still` is asked before each step. Raises StoreError where a bundle stays there.

        `refuse_unfound` raises unless the index finds every file that the tier's table needs: where segments of it are
        lost, a bundle that none names may be all that is left of its files.
        """
        index = self.bundles.index
        index.recall()  # another erasure may have packed them anew since it was read
        due = {bundle: self.bundles.new_name() for bundle in self.due()}
        strays = [each for each in self.strays() if self._is_old(each, now())]
        if due or strays:
            still()
            self._note([*due, *strays], list(due.values()), asked, now())
        for bundle, new in due.items():
            self._empty(bundle, new, still)
        begun = list(self._begun())
        if begun:
            refuse_unfound()
        for note in begun:
            gone = {bundle for bundle in (*note.bundles, *note.new) if not index.members(bundle)}
            for bundle in sorted(gone):
                self._remove(bundle, still)
            if gone.issuperset(note.bundles):
                self.store.put_if_absent(join(self._notes, f"{note.stem}{_DONE}"), b"{}")

    def strays(self) -> list[str]:
        """Returns bundles that neither the index nor a note names: a hand-over is about to say what they hold, or died
        before, and it may be one of the files. Those of yesterday go with `erase`.
        """
        noted = {bundle for note in self._begun() for bundle in (*note.bundles, *note.new)}
        return [bundle for bundle in self.bundles.index.unnamed() if bundle not in noted]

    def _is_old(self, bundle: str, now_ms: int) -> bool:
        written = self.store.head(bundle).modified_ms
        return written is not None and written < now_ms - DAY_MS

    def _empty(self, bundle: str, new: str, still: Still) -> None:
        """Packs what a bundle holds anew, except for the files, and takes it out of the index."""
        index = self.bundles.index
        stays = tuple(each for each in index.members(bundle) if identity(each.place) not in self.files)
        if stays:
            job = RepackJob(new, self.bundles.root, stays)
            (outcome,) = self.bundles.repack.repack([job], still)
            if outcome.error:
                raise ArchiveIncomplete(
                    f"{bundle} could not be packed anew: {outcome.error}", hint="it is as it was; erase again"
                )
            still()
            index.add([outcome])
        for name in index.without(bundle):
            still()
            self.discard.discard([OwnKey(index.segments, name)])
        index.recall()
        if index.members(bundle):
            raise StoreError(f"a segment of the index that names {bundle} could not be removed", hint="erase again")

    def _remove(self, bundle: str, still: Still) -> None:
        """Removes a bundle that the index does not name any more."""
        folder, _, name = bundle.rpartition("/")
        still()
        self.discard.discard([OwnKey(folder, name)])
        if is_there(self.store, bundle):
            raise StoreError(f"{bundle} could not be removed", hint="erase again, with the right to delete there")

    @property
    def _notes(self) -> str:
        return join(self.bundles.index.folder, _NOTES)

    def _note(self, bundles: list[str], new: list[str], asked: Inquiry, at: int) -> None:
        """Writes down what goes before anything does, for which case and by whom."""
        said = {"at": format_instant(at), "files": sorted(self.packed()), "case": asked.case, "by": asked.by}
        key = join(self._notes, f"{at:014d}-{uuid4().hex}{_BEGUN}")
        self.store.put_if_absent(key, json.dumps({**said, "bundles": bundles, "new": new}, ensure_ascii=False).encode())

    def _begun(self) -> Iterator[_BegunNote]:
        """Yields each note that says of no end."""
        names = set(self.store.names(self._notes))
        for name in sorted(names):
            stem = name.removesuffix(_BEGUN)
            if stem != name and f"{stem}{_DONE}" not in names:
                key = join(self._notes, name)
                yield _note_in(key, stem, self.store.get(key), self.bundles.index.folder)


def _note_in(key: str, stem: str, data: bytes, folder: str) -> _BegunNote:
    """Returns what a note says. Raises UnreadableMetadata unless it names bundles of this very history."""
    try:
        said = json.loads(data)
        note = _BegunNote(stem, list(map(str, said["files"])), list(said["bundles"]), list(said["new"]))
        if all(each.rpartition("/")[0] == folder and each.endswith(BUNDLE) for each in (*note.bundles, *note.new)):
            return note
        raise ValueError("it names other objects than bundles")
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise UnreadableMetadata(f"{key} is no note of an erasure: {problem}", hint="bring it back") from problem
