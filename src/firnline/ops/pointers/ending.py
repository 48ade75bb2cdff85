"""The end of pointers: of an earlier name, of a dropped table or branch, of another naming; old entries of a log.

A file of an earlier name leads on to the new one, and one of a table that is gone says so. Until its time is over, the
first is kept at what the catalog says, for readers who do not follow links. Only files that were published from this
very catalog are touched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from firnline.errors import ObjectChanged, StoreError, UnreadableMetadata
from firnline.model.locations import identity, join
from firnline.model.snapshots import MAIN
from firnline.model.times import LAST_MS, format_instant, parse_instant
from firnline.ops.pointers.policy import PointerPolicy, PointerStatus
from firnline.ops.pointers.truth import UuidOf, is_registered, truth_of
from firnline.ops.table.context import TableContext
from firnline.pointers.document import NoPointer, Pointer
from firnline.pointers.names import FOLDER, Naming, PointedBranch, PointerName, by_identifier, read_name
from firnline.pointers.ordinals import later, ordinal_ms
from firnline.pointers.publishing import CatalogTruth
from firnline.pointers.reading import FoundPointer, newest_names, pointer_names, read_to_replace
from firnline.pointers.resolving import table_folder
from firnline.ports.abilities import KeepsVersions
from firnline.ports.formats import State
from firnline.ports.retire import Retire


@dataclass(frozen=True, slots=True)
class PointerEnds:
    """Ends the pointers in a table's folder that are none of its `current` files. `take_over` is for those of this
    table, too, that were published from another catalog.
    """

    work: TableContext
    policy: PointerPolicy
    retire: Retire
    uuid_of: UuidOf
    current: Collection[str]
    take_over: bool = False

    def settle(self) -> Iterator[PointerStatus]:
        """Yields what was ended, brought up to date or taken away."""
        state = self.work.source.load()
        for folder in (state.location, join(state.location, FOLDER)):
            names = pointer_names(self.work.store, folder)
            newest = {*newest_names(names)}
            for name in names:
                yield from self._tried(join(folder, name), state, is_newest=name in newest)

    def trim(self) -> Iterator[PointerStatus]:
        """Yields the entries of the table's own log that were taken away: what each publication adds, one takes out."""
        state = self.work.source.load()
        folder = join(state.location, FOLDER)
        names = pointer_names(self.work.store, folder)
        for name in sorted({*names} - {*newest_names(names)}):
            if self._is_entry(read_name(name), truth_of(self.work, state)):
                yield from self._tried(join(folder, name), state, is_newest=False)

    def _tried(self, key: str, state: State, is_newest: bool) -> Iterator[PointerStatus]:
        """Yields what became of a file, if anything. One that cannot be read is told and does not stop the others."""
        try:
            done = self._settled(key, state, is_newest)
        except UnreadableMetadata as problem:
            done = PointerStatus.failed(key, MAIN, problem)
        if done is not None:
            yield done

    def _settled(self, key: str, state: State, is_newest: bool) -> PointerStatus | None:
        """Returns what became of a file. The first look decides whether there is anything to do; then the file is read
        again, the catalog asked after that, and the file replaced as it was read: the name may be in use again.
        """
        named = read_name(key.rpartition("/")[2])
        if key in self.current or (not is_newest and named is not None and not self._is_past(named.ordinal)):
            return None
        if not self._is_due(self._read(key), state, is_newest):
            return None
        found = self._read(key)
        if found is None or not self._is_ours(found.pointer, state):
            return None
        if self._is_over(found, is_newest):
            return self._taken(found)
        told = self._next(found, self.work.source.load()) if is_newest else None
        return None if told is None else self._replaced(found, told)

    def _read(self, key: str) -> FoundPointer | None:
        """Returns the pointer; None where there is none, or a file of another program that only ends like one."""
        try:
            return read_to_replace(self.work.store, key)
        except NoPointer:
            if read_name(key.rpartition("/")[2]) is None:
                return None
            raise

    def _is_ours(self, pointer: Pointer, state: State) -> bool:
        return pointer.published_by == self.work.address or (self.take_over and pointer.guid == state.uuid)

    def _is_past(self, ordinal: str | None) -> bool:
        """Tells whether an entry of a log is older than links live."""
        return ordinal is None or self.work.now() > ordinal_ms(ordinal) + self.policy.links_ms

    def _is_due(self, found: FoundPointer | None, state: State, is_newest: bool) -> bool:
        if found is None or not self._is_ours(found.pointer, state):
            return False
        return self._is_over(found, is_newest) or (is_newest and self._next(found, state) is not None)

    def _is_over(self, found: FoundPointer, is_newest: bool) -> bool:
        """Tells whether the time of a file is over: its own, or that of an entry which later ones follow."""
        pointer = found.pointer
        if pointer.expires_at is not None:
            return self.work.now() > parse_instant(pointer.expires_at)
        return not is_newest and self._is_past(pointer.ordinal)

    def _next(self, found: FoundPointer, state: State) -> Pointer | None:
        """Returns what the file has to say; None where it says so already, or is no matter of this table's."""
        truth, pointer = truth_of(self.work, state), found.pointer
        if self._is_no_more(pointer, state, truth):
            return self._dropped(pointer) if pointer.dropped_at is None else None
        if pointer.guid != truth.guid:
            return None
        if self._is_entry(found.named, truth) or self._is_another_name(pointer, truth):
            return None
        told = replace(
            pointer,
            metadata_file_path=truth.metadata,
            published_by=truth.address,
            renamed_to=self._link(found, truth),
            dropped_at=None,
            expires_at=pointer.expires_at or self._end(),
        )
        return None if told == pointer else replace(told, ordinal=later(truth.committed_ms, pointer.ordinal))

    def _is_no_more(self, pointer: Pointer, state: State, truth: CatalogTruth) -> bool:
        """Tells whether a pointer leads to what is gone: another table that had this very name, a branch, or a
        registration that went further than the one which is left. Of other tables nothing is said here: one that this
        catalog does not have under the pointer's name may have another name.
        """
        if pointer.guid != truth.guid:
            return pointer.table_identifier == truth.identifier
        if pointer.branch != MAIN and pointer.branch not in state.refs:
            return True
        return pointer.table_identifier != truth.identifier and self._went_further(pointer, state, truth)

    def _went_further(self, pointer: Pointer, state: State, truth: CatalogTruth) -> bool:
        """Tells whether a pointer of another name leads to what this table never was. Its own log tells, as far back as
        that goes, and then the times; as long as the catalog has that name, nothing is over.
        """
        table_format = self.work.source.format
        versions = table_format.versions(state) if isinstance(table_format, KeepsVersions) else ()
        known = {identity(place) for place, _ in versions}
        later_than_this = ordinal_ms(pointer.ordinal) > truth.committed_ms
        return identity(pointer.metadata_file_path) not in known and later_than_this and self._is_gone(pointer)

    def _is_entry(self, named: PointerName | None, truth: CatalogTruth) -> bool:
        """Tells whether a name is that of the newest entry in the table's own log."""
        if self.policy.naming is not Naming.ORDINAL or named is None or named.ordinal is None:
            return False
        return (named.subject.namespace, named.subject.table) == (truth.namespace, truth.table)

    def _is_another_name(self, pointer: Pointer, truth: CatalogTruth) -> bool:
        """Tells whether the catalog has the same table under the pointer's name, too: it is registered twice."""
        return pointer.table_identifier != truth.identifier and not self._is_gone(pointer)

    def _link(self, found: FoundPointer, truth: CatalogTruth) -> str | None:
        """Returns the file beside it that goes on; None where there is none of a known name."""
        name = by_identifier(PointedBranch(truth.namespace, truth.table, found.pointer.branch))
        return name if join(found.key.rpartition("/")[0], name) in self.current else None

    def _is_gone(self, pointer: Pointer) -> bool:
        return not is_registered(self.uuid_of, pointer)

    def _dropped(self, pointer: Pointer) -> Pointer:
        ordinal = later(0, pointer.ordinal)
        now = format_instant(self.work.now())
        return replace(
            pointer,
            ordinal=ordinal,
            published_by=self.work.address,
            renamed_to=None,
            dropped_at=now,
            expires_at=self._end(),
        )

    def _end(self) -> str:
        """Returns when a file ends; where links are to stay for ever, at the end of the calendar."""
        return format_instant(min(self.work.now() + self.policy.links_ms, LAST_MS))

    def _replaced(self, found: FoundPointer, told: Pointer) -> PointerStatus | None:
        try:
            self.work.store.put_if_match(found.key, told.to_bytes(), found.seen)
        except ObjectChanged:
            return None  # another publisher saw the same, or the name is in use again: the next look tells
        leads = f"leads to {told.renamed_to}" if told.renamed_to else "ends"
        outcome = "dropped" if told.dropped_at else leads
        return PointerStatus(found.key, outcome, told.branch, told.metadata_file_path, told.ordinal)

    def _taken(self, found: FoundPointer) -> PointerStatus | None:
        try:
            is_gone = self._removed(found)
        except StoreError as problem:
            return PointerStatus(found.key, f"stays: {problem}", found.pointer.branch)
        if is_gone is None:
            return self._emptied(found)
        return PointerStatus(found.key, "expired", found.pointer.branch) if is_gone else None

    def _removed(self, found: FoundPointer) -> bool | None:
        """Tells whether a file was taken away; None where the store cannot take it away only as it was read. Its name
        may be in use again at this very moment, and then it is another file. No publisher gives the name of an entry
        that later ones follow again, so for that one a look just before is enough, on any store.
        """
        if found.pointer.expires_at is None:
            return self.retire.retire(found.key, found.seen.data)
        if not self.retire.retires_as_read(join(table_folder(found.key), FOLDER)):
            return None
        return self.retire.retire_as_read(found.key, found.seen)

    def _emptied(self, found: FoundPointer) -> PointerStatus | None:
        """Lets a file that cannot be taken away lead nowhere: its readers are told that the name is gone, as they
        would be without it, and it keeps nothing. Its end stays in the past, so that no sync makes it a link again.
        """
        pointer = found.pointer
        if pointer.dropped_at is not None:
            return None
        done = self._replaced(found, replace(self._dropped(pointer), expires_at=pointer.expires_at))
        return None if done is None else replace(done, outcome="expired, leads nowhere")
