"""Iceberg behind the TableFormat port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from firnline.errors import ObjectNotFound, RefusedForSafety, UnreadableMetadata
from firnline.formats.iceberg import edit, fields
from firnline.formats.iceberg.counts import files_told, live_size
from firnline.formats.iceberg.document import Document, document_bytes, document_in, read_metadata, successor_name
from firnline.formats.iceberg.expand import IcebergExpand, roots_of
from firnline.formats.iceberg.names import places_of
from firnline.formats.iceberg.readers.pointed import BehindPointer, folder_pointers
from firnline.formats.iceberg.state import LastRead, state_of, with_bridges
from firnline.model.files import File, FileKind, Tally
from firnline.model.locations import join
from firnline.model.removals import Removal
from firnline.model.snapshots import SnapshotId
from firnline.ports.abilities import FolderPointer, PointedVersion, Undefined
from firnline.ports.catalogs import Still
from firnline.ports.formats import Amendment, Edited, State
from firnline.ports.progress import Progress
from firnline.ports.stores import Head, PutIfAbsent, Read

if TYPE_CHECKING:
    from firnline.formats.iceberg.erasing.snapshots import Erasing
    from firnline.formats.iceberg.relocating import IcebergRelocation
    from firnline.model.readers import StreamOffset
    from firnline.ports.erasing import Namers, Trimmed, Trimming
    from firnline.ports.listings import WrittenFolder
    from firnline.ports.relocating import Place

_PURGE_ORDER = (
    FileKind.DATA,
    FileKind.POSITION_DELETES,
    FileKind.EQUALITY_DELETES,
    FileKind.DELETION_VECTORS,
    FileKind.MANIFEST,
    FileKind.MANIFEST_LIST,
    FileKind.STATISTICS,
    FileKind.PARTITION_STATISTICS,
    FileKind.METADATA,
)


@dataclass(frozen=True, slots=True)
class IcebergFormat:
    """Reads Iceberg tables through any store, and edits what it read.

    `trusted` are the snapshots whose manifest lists the operator vouches for.
    """

    store: Read
    trusted: frozenset[SnapshotId] = frozenset()
    last: LastRead = field(default_factory=LastRead, compare=False, repr=False)

    @property
    def name(self) -> str:
        return "iceberg"

    @property
    def expand(self) -> IcebergExpand:
        return IcebergExpand(self.store)

    @property
    def purge_order(self) -> tuple[FileKind, ...]:
        return _PURGE_ORDER

    @property
    def unique_names(self) -> bool:
        """Writers of data may name files as they like, and partitions have files of one name."""
        return False

    @property
    def paths_follow_folder(self) -> bool:
        return False

    def load(self, table: str, metadata_location: str) -> State:
        where = metadata_location
        data = read_metadata(self.store, where)
        return self.last.of((table, where), data, lambda: state_of(document_in(data, where), table, where))

    def metadata_files(self, state: State) -> Iterator[str]:
        yield state.fence
        yield from (place for place, _ in self.versions(state)[:-1])

    def versions(self, state: State) -> list[tuple[str, int]]:
        logged = state.document.get("metadata-log") or ()
        earlier = ((each["metadata-file"], _time_in(each, "timestamp-ms")) for each in logged)
        return [*earlier, (state.fence, _time_in(state.document, "last-updated-ms"))]

    def clearing(self, state: State, earlier: int) -> str | None:
        said = f"{edit.CLEARING}=true and {edit.LOG_LENGTH}={earlier}"
        return None if edit.clears_metadata(state.document) else said

    def pointers(self, state: State) -> list[FolderPointer]:
        return list(folder_pointers(self.store, state))

    def version_behind(self, state: State, pointer: FolderPointer) -> PointedVersion:
        return BehindPointer(self.store, state, pointer, self.trusted).version()

    def places(self, state: State) -> tuple[WrittenFolder, ...]:
        return places_of(state.location, state.properties)

    def table_of(self, key: str) -> State | None:
        try:
            return self.load(key, key)
        except UnreadableMetadata as damage:
            if isinstance(damage.__cause__, ObjectNotFound):
                return None
            raise

    def written_ms(self, state: State) -> int:
        return fields.whole(state.document, "last-updated-ms", state.fence)

    def expire(
        self,
        state: State,
        snapshots: Set[SnapshotId],
        refs: Set[str],
        now_ms: int,
        *,
        clean: bool = False,
        amendment: Amendment | None = None,
        side_objects: Set[str] = frozenset(),
    ) -> Edited:
        from firnline.formats.iceberg.definitions import without_unused

        edited, removal = edit.expired(state.document, snapshots, refs)
        edited = with_bridges(edited, state.graph.bridges_without(snapshots))
        edited = edit.amended(edited, amendment or Amendment())
        if clean:
            edited, unused = without_unused(edited, self.store)
            removal = {**removal, **unused}
        return replace(_successor(state, edited, now_ms), removal=_removal_of(removal))

    def restore(self, state: State, removal: Removal, now_ms: int, *, amendment: Amendment | None = None) -> Edited:
        taken = _taken_by(removal)
        edit.refuse_reused_ids(state.document, taken)
        edited, left_alone = edit.restored(state.document, taken)
        edited = self._readable(edited, state.document, taken)
        edited = edit.amended(edited, amendment or Amendment())
        graph = state_of(edited, state.table, state.fence).graph
        edited = with_bridges(edited, graph.bridges_without(frozenset()))
        return replace(_successor(state, edited, now_ms), left_alone=tuple(left_alone))

    def _readable(self, edited: Document, before: Document, removal: Mapping[str, Any]) -> dict[str, Any]:
        from firnline.formats.iceberg.definitions import refuse_lost_sources, with_definitions

        try:
            readable = with_definitions(edited, removal, self.store)
        except UnreadableMetadata as gone:
            raise RefusedForSafety(gone.message, hint="nothing was changed; plan again if the rest may go") from gone
        refuse_lost_sources(readable, before)
        return readable

    def relocation(self, place: Place, target: Head) -> IcebergRelocation:
        from firnline.formats.iceberg.relocating import IcebergRelocation

        return IcebergRelocation(place, target)

    def handed_over(
        self, state: State, snapshots: Set[SnapshotId], tags: Set[str], place: Place, into: State | None, now_ms: int
    ) -> Edited:
        from firnline.formats.iceberg.archiving import archived

        document = archived(state, snapshots, tags, place, into, now_ms)
        before = join(document["location"], "metadata/00000-") if into is None else into.fence
        return Edited(document_bytes(document), successor_name(document, before), document)

    def returning(self, there: State, snapshot: SnapshotId, place: Place) -> Removal:
        from firnline.formats.iceberg.archiving import returning

        return _removal_of(returning(there, snapshot, place))

    def naming(self, state: State, files: Set[str], progress: Progress, among: Set[SnapshotId] | None = None) -> Namers:
        return self._erasing(state, files).naming(progress, among)

    def trimmed(self, state: State, files: Set[str], naming: Namers, store: PutIfAbsent, still: Still) -> Trimming:
        return self._erasing(state, files).trimmed(naming, store, still)

    def _erasing(self, state: State, files: Set[str]) -> Erasing:
        from firnline.formats.iceberg.erasing.snapshots import Erasing

        return Erasing(self.store, state.document, files)

    def with_trimmed(self, state: State, trimmed: Sequence[Trimmed]) -> State:
        from firnline.formats.iceberg.erasing.snapshots import with_trimmed

        return state_of(with_trimmed(state.document, trimmed) or state.document, state.table, state.fence)

    def erased(self, state: State, trimmed: Sequence[Trimmed], now_ms: int) -> Edited | None:
        from firnline.formats.iceberg.erasing.snapshots import with_trimmed

        edited = with_trimmed(state.document, trimmed)
        return None if edited is None else _successor(state, edited, now_ms)

    def undefined(self, state: State) -> Iterator[Undefined]:
        from firnline.formats.iceberg.definitions import undefined_in

        return undefined_in(state.document, state.fence, self.store)

    def amend(self, state: State, amendment: Amendment, now_ms: int) -> Edited:
        return _successor(state, edit.amended(state.document, amendment), now_ms)

    def with_removal(self, state: State, removal: Removal) -> State:
        return state_of(edit.restored(state.document, _taken_by(removal))[0], state.table, state.fence)

    def part_of(self, removal: Removal, snapshots: Set[SnapshotId]) -> Removal:
        """Returns the snapshots with their statistics. The log stays out: it tells of others too."""
        return _removal_of(edit.part_of(_taken_by(removal), snapshots))

    def entries(self, state: State) -> int:
        return files_told(state.document)

    def live_size(self, state: State) -> Tally | None:
        return live_size(state.document, state.current)

    def snapshot_objects(self, state: State) -> Iterator[Mapping[str, Any]]:
        return iter(state.document.get("snapshots") or ())

    def declared_history(self, state: State) -> str | None:
        declared = state.document.get(edit.EXPIRED_PATH)
        return declared if isinstance(declared, str) and declared else None

    def lengthened(self, state: State, age_ms: int, count: int, tags: Sequence[str]) -> Amendment:
        from firnline.formats.iceberg.retention import lengthened

        return lengthened(state, age_ms, count, tags)

    def roots(self, state: State) -> Iterator[tuple[SnapshotId, File]]:
        return roots_of(state, self.trusted)

    def offset_in(self, text: str) -> StreamOffset | None:
        from firnline.formats.iceberg.readers.offsets import offset_in

        return offset_in(text)


def _removal_of(taken: edit.Taken) -> Removal:
    refs = {name: str(ref["snapshot-id"]) for name, ref in (taken.get("refs") or {}).items()}
    payload = {name: value for name, value in taken.items() if name != "snapshots"}
    return Removal(tuple(taken["snapshots"]), refs, payload)


def _taken_by(removal: Removal) -> edit.Taken:
    return {**removal.payload, "snapshots": list(removal.snapshots)}


def _time_in(document: Mapping[str, Any], key: str) -> int:
    """Returns an instant that is only told, and nothing goes by it: 0 where a writer left it out."""
    value = document.get(key)
    return value if isinstance(value, int) else 0


def _successor(state: State, edited: dict[str, Any], now_ms: int) -> Edited:
    document: Document = edit.stamped(edited, state.fence, now_ms)
    forgotten = tuple(edit.forgotten_metadata(state.document, document))
    return Edited(document_bytes(document), successor_name(document, state.fence), document, forgotten=forgotten)
