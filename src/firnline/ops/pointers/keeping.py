"""Publishing all pointers of a table, and ending those of names that it does not have any more.

A file of an earlier name leads on to the new one, one of a dropped table says so; both go when their time is over. Only
files that were published from this very catalog are touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from firnline.errors import NoSuchTable, ObjectChanged, RefusedForSafety
from firnline.model.locations import join
from firnline.model.names import parts_of
from firnline.model.snapshots import MAIN, RefKind
from firnline.model.times import format_instant, parse_instant
from firnline.ops.pointers.truth import Asking, Behind, asking, behind, truth_of
from firnline.ops.table.context import TableContext
from firnline.pointers.hints import HintPublisher
from firnline.pointers.names import Naming, PointedBranch, by_identifier, read_name
from firnline.pointers.ordinals import ordinal_ms
from firnline.pointers.publishing import CatalogTruth, Publication, Published, Publisher, ended, folder_of
from firnline.pointers.reading import FoundPointer, newest_names, pointer_names, read_to_replace
from firnline.policy.inherit import Effective
from firnline.ports.formats import State
from firnline.ports.retire import Retire

UuidOf = Callable[[tuple[str, ...]], str]
"""Returns the uuid of the table that a name, level by level, has in the same catalog. Raises NoSuchTable."""


@dataclass(frozen=True, slots=True)
class PointerPolicy:
    """What a policy says of a table's pointers: how they are named, of which branches there are some, and how long one
    stays whose table has another name or is gone; and whether there is a hint, too.
    """

    naming: Naming
    branches: tuple[str, ...]
    links_ms: int
    hint: bool = False

    @staticmethod
    def of(effective: Effective) -> PointerPolicy | None:
        """Returns what is in force; None where no policy asks for pointers."""
        naming = effective.pointers.value
        if naming is None:
            return None
        branches, links = effective.pointer_branches.value, effective.pointer_links.value
        return PointerPolicy(Naming(naming), branches, links, effective.version_hint.value)

    def chosen(self, state: State) -> list[str]:
        """Returns the branches of the table that have a pointer; main has one before its first commit, too."""
        refs = [name for name, ref in state.refs.items() if ref.kind is RefKind.BRANCH]
        names = dict.fromkeys((*(each for each in self.branches if "*" not in each and "?" not in each), *refs))
        return [name for name in names if self._wants(name) and (name in refs or name == MAIN)]

    def _wants(self, branch: str) -> bool:
        return any(fnmatchcase(branch, pattern) for pattern in self.branches)


@dataclass(frozen=True, slots=True)
class PointerStatus:
    """What became of one pointer. `was_behind` tells how stale it was found."""

    key: str
    outcome: str
    branch: str
    metadata: str | None = None
    ordinal: str | None = None
    was_behind: Behind | None = None


@dataclass(frozen=True, slots=True)
class PointerKeeper:
    """Keeps the pointers of one table. `retire` takes a file away, only as it was read; `uuid_of` asks the catalog."""

    work: TableContext
    policy: PointerPolicy
    retire: Retire
    uuid_of: UuidOf
    take_over: bool = False

    def publish(self) -> list[PointerStatus]:
        """Returns each branch's pointer, moved on to what the catalog says. Files of earlier names are looked for where
        one is new: a rename makes a new file.
        """
        ask = asking(self.work)
        ask()
        found = [self._publish(branch, ask) for branch in self.policy.chosen(_last(ask))]
        if self.policy.hint:
            found.append(self._hint(ask))
        return [*found, *(self.tidy() if any(each.outcome == Published.NEW for each in found) else ())]

    def sync(self) -> list[PointerStatus]:
        """Returns the same, with whatever else lies in the folder ended or taken away."""
        found = {each.key: each for each in self.publish()}
        found.update((each.key, each) for each in self.tidy())
        return list(found.values())

    def _publish(self, branch: str, ask: Asking) -> PointerStatus:
        publisher = Publisher(self.work.store, self.policy.naming, branch, self.take_over)
        done = publisher.publish(ask)
        return _told(done, self.work, _last(ask))

    def _hint(self, ask: Asking) -> PointerStatus:
        key, outcome = HintPublisher(self.work.store, self._is_ours).publish(ask)
        return PointerStatus(key, outcome, MAIN, _last(ask).fence)

    def _is_ours(self, place: str, guid: str) -> bool:
        found = self.work.source.format.table_of(place)
        return found is None or found.uuid == guid

    def tidy(self) -> list[PointerStatus]:
        """Returns what was ended or taken away: pointers of earlier names and of dropped tables, old entries of a
        log.
        """
        state = self.work.source.load()
        truth = truth_of(self.work, state)
        folder = folder_of(state.location, self.policy.naming)
        names = pointer_names(self.work.store, folder)
        newest = newest_names(names)
        done = [*self._ended(folder, newest, truth), *self._without_old(folder, sorted({*names} - {*newest}), truth)]
        return [each for each in done if each is not None]

    def _ended(self, folder: str, names: list[str], truth: CatalogTruth) -> Iterator[PointerStatus | None]:
        for name in names:
            found = read_to_replace(self.work.store, join(folder, name))
            if found is not None and found.pointer.published_by == truth.address:
                yield self._settled(found, truth)

    def _settled(self, found: FoundPointer, truth: CatalogTruth) -> PointerStatus | None:
        pointer = found.pointer
        if pointer.expires_at is not None:
            return self._expired(found, parse_instant(pointer.expires_at))
        if pointer.guid == truth.guid and pointer.table_identifier != truth.identifier:
            link = by_identifier(PointedBranch(truth.namespace, truth.table, pointer.branch))
            return self._end(found, renamed_to=link) if self.policy.naming is not Naming.UUID else None
        if pointer.guid != truth.guid and self._is_gone(found):
            return self._end(found, dropped_at=format_instant(self.work.now()))
        return None

    def _is_gone(self, found: FoundPointer) -> bool:
        try:
            return self.uuid_of(parts_of(found.pointer.table_identifier)) != found.pointer.guid
        except NoSuchTable:
            return True

    def _end(self, found: FoundPointer, **how: str) -> PointerStatus | None:
        over = ended(found.pointer, format_instant(self.work.now() + self.policy.links_ms), **how)
        try:
            self.work.store.put_if_match(found.key, over.to_bytes(), found.seen)
        except ObjectChanged:
            return None  # another publisher saw the same, or the name is in use again: the next look tells
        outcome = f"leads to {over.renamed_to}" if over.renamed_to else "dropped"
        return PointerStatus(found.key, outcome, over.branch, over.metadata_file_path, over.ordinal)

    def _expired(self, found: FoundPointer, until_ms: int) -> PointerStatus | None:
        if self.work.now() <= until_ms or not self.retire.retire(found.key, found.seen.data):
            return None
        return PointerStatus(found.key, "expired", found.pointer.branch)

    def _without_old(self, folder: str, names: list[str], truth: CatalogTruth) -> Iterator[PointerStatus | None]:
        """Yields the entries of logs that are older than links live: each has a later one."""
        for name in names:
            told = read_name(name)
            if told is None or told.ordinal is None or self._is_young(told.ordinal):
                continue
            found = read_to_replace(self.work.store, join(folder, name))
            if found is not None and found.pointer.published_by == truth.address:
                yield self._expired(found, ordinal_ms(told.ordinal) + self.policy.links_ms)

    def _is_young(self, ordinal: str) -> bool:
        return self.work.now() <= ordinal_ms(ordinal) + self.policy.links_ms


def _last(ask: Asking) -> State:
    if ask.state is None:
        raise RefusedForSafety("the catalog was not asked", hint="this is a bug; please report it")
    return ask.state


def _told(done: Publication, work: TableContext, state: State) -> PointerStatus:
    late = None if done.before is None else behind(work.source.format, state, done.before)
    pointer = done.pointer
    return PointerStatus(done.key, done.outcome, pointer.branch, pointer.metadata_file_path, pointer.ordinal, late)
