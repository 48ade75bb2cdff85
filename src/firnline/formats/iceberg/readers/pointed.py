"""What readers find who open a table by a pointer in its folder: an old version of it, if nobody published a newer."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

from firnline.errors import ObjectNotFound
from firnline.formats.iceberg.document import document_in
from firnline.formats.iceberg.expand import roots_of
from firnline.formats.iceberg.state import state_of
from firnline.model.files import File
from firnline.model.locations import identity, within
from firnline.model.snapshots import MAIN, SnapshotId
from firnline.ports.abilities import FolderPointer, PointedVersion
from firnline.ports.formats import State
from firnline.ports.stores import Read


def folder_pointers(store: Read, state: State) -> Iterator[FolderPointer]:
    """Yields the pointers in a table's folder, and its hints. One that says that its table was dropped leads nobody to
    any file.

    One that says that its table was renamed still counts: who knows only the keys of the proposal goes by its path.
    """
    from firnline.pointers.hints import hint_keys
    from firnline.pointers.reading import pointers_of

    for key in hint_keys(state.location, state.fence):
        yield from _hint(store, state, key)
    for found in pointers_of(store, state.location):
        told = found.pointer
        if told.dropped_at is None:
            yield FolderPointer(found.key, told.guid, told.metadata_file_path, told.branch)


def _hint(store: Read, state: State, key: str) -> Iterator[FolderPointer]:
    """Yields a hint. Whose it is, the metadata tells that it names: a folder of several tables has one hint. A number
    is a path table's own: it counts where it is behind, for the readers that do not go on from there.
    """
    from firnline.pointers.hints import read_hint

    hint = read_hint(store, key)
    if hint is None or (hint.is_number and identity(hint.place) == identity(state.fence)):
        return
    found = _version(store, state, hint.place)
    if found is not None or not hint.is_number:
        yield FolderPointer(key, state.uuid if found is None else found.uuid, hint.place, MAIN)


def _version(store: Read, state: State, place: str) -> State | None:
    """Returns the version in a metadata file; None where that is gone. The current one was read a moment ago."""
    if identity(place) == identity(state.fence):
        return state
    try:
        data = store.get(place)
    except ObjectNotFound:
        return None
    return state_of(document_in(data, place), state.table, place)


@dataclass(frozen=True, slots=True)
class BehindPointer:
    """Opens the version that a pointer names, of the table at hand or of another in its folder."""

    store: Read
    state: State
    pointer: FolderPointer
    trusted: Set[SnapshotId]

    def version(self) -> PointedVersion:
        """Returns what readers find. Raises UnreadableMetadata where it is there and cannot be read."""
        if self._is_outside():
            return PointedVersion(
                self.pointer,
                trouble=self._words(f"names {self.pointer.metadata}, which lies in no folder of {self.state.table}"),
                is_outside=True,
            )
        found = _version(self.store, self.state, self.pointer.metadata)
        if found is None:
            return self._troubled(f"names metadata that is not there: {self.pointer.metadata}")
        head, trouble = self._head(found)
        files = tuple(file for owner, file in roots_of(found, self.trusted) if owner == head)
        gone = {file.key for file in files if file.opens and not self._is_there(file)}
        if gone:
            trouble = f"names snapshot {head}, of which {min(gone)} is gone"
        # What is gone cannot be opened. As a name it still counts: a purge that took it just now has to notice.
        named = tuple(replace(file, opens=False) if file.key in gone else file for file in files)
        return self._troubled(trouble, head, named) if trouble else PointedVersion(self.pointer, head, named)

    def _is_outside(self) -> bool:
        """Tells whether the path is in no folder of the table: a pointer is anybody's word, and must not make us read
        any file of this machine.
        """
        log = (str(entry["metadata-file"]) for entry in self.state.document.get("metadata-log") or ())
        folders = (*self.state.owned, *(each.rpartition("/")[0] for each in (self.state.fence, *log)))
        return not any(within(folder, self.pointer.metadata) for folder in folders)

    def _head(self, found: State) -> tuple[SnapshotId | None, str]:
        """Returns the snapshot that readers get, and what is wrong with the pointer. Who does not know the branch reads
        the current one.
        """
        ref, trouble = found.refs.get(self.pointer.branch), ""
        if not self.pointer.is_of(found.uuid):
            trouble = f"names metadata of another table, {found.uuid}: {found.fence}"
        elif ref is None and self.pointer.branch != MAIN:
            trouble = f"names the branch {self.pointer.branch}, which its metadata does not have: {found.fence}"
        return (found.current if ref is None else ref.snapshot), trouble

    def _is_there(self, file: File) -> bool:
        try:
            self.store.head(file.key)
        except ObjectNotFound:
            return False
        return True

    def _troubled(
        self, trouble: str, snapshot: SnapshotId | None = None, files: tuple[File, ...] = ()
    ) -> PointedVersion:
        return PointedVersion(self.pointer, snapshot, files, self._words(trouble))

    def _words(self, trouble: str) -> str:
        return f"the pointer {self.pointer.key} {trouble}"
