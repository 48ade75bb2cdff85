"""Publishing all pointers of a table, and ending what its folder has of earlier names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from firnline.errors import FirnlineError, NoSuchTable, RefusedForSafety
from firnline.model.locations import identity
from firnline.model.names import written
from firnline.model.snapshots import MAIN
from firnline.ops.pointers.ending import PointerEnds
from firnline.ops.pointers.policy import PointerPolicy, PointerStatus
from firnline.ops.pointers.truth import Asking, UuidOf, behind, is_registered
from firnline.ops.table.context import TableContext
from firnline.pointers.document import Pointer
from firnline.pointers.hints import HintPublisher, hint_key
from firnline.pointers.names import Naming
from firnline.pointers.publishing import Publication, Published, Publisher
from firnline.pointers.reading import pointers_of
from firnline.ports.abilities import KeepsVersions
from firnline.ports.formats import State
from firnline.ports.retire import Retire


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
        if self.policy.naming is None:
            return []
        ask = self._asking()
        found = self._published(self.policy.naming, ask)
        return [*found, *self._hinted(ask), *self._cleaned(found)]

    def sync(self) -> list[PointerStatus]:
        """Returns the same, with whatever else lies in the folder ended or taken away; if there are to be no pointers,
        that is all.
        """
        if self.policy.naming is None:
            return self._ended([])
        ask = self._asking()
        found = self._published(self.policy.naming, ask)
        return [*found, *self._hinted(ask), *self._ended(found)]

    def _asking(self) -> Asking:
        """Returns who asks the catalog, asked once: what is wrong with the table is a problem of all its pointers."""
        ask = Asking(self.work)
        ask()
        return ask

    def _published(self, naming: Naming, ask: Asking) -> list[PointerStatus]:
        branches = self.policy.chosen(_last(ask))
        return [_or_why_not("", branch, partial(self._publish, naming, branch, ask)) for branch in branches]

    def _hinted(self, ask: Asking) -> list[PointerStatus]:
        return [_or_why_not(hint_key(_last(ask).fence), MAIN, partial(self._hint, ask))] if self.policy.hint else []

    def _cleaned(self, found: list[PointerStatus]) -> list[PointerStatus]:
        outcomes = {each.outcome for each in found}
        if Published.NEW in outcomes:
            return self._ended(found)
        grows = self.policy.naming is Naming.ORDINAL and Published.MOVED_ON in outcomes
        return list(self._ends(found).trim()) if grows else []

    def _ended(self, found: list[PointerStatus]) -> list[PointerStatus]:
        """Returns what was ended. Nothing is where a branch failed: its file is none of an earlier name."""
        if any(each.problem is not None for each in found):
            return []
        return list(self._ends(found).settle())

    def _ends(self, found: list[PointerStatus]) -> PointerEnds:
        current = frozenset(each.key for each in found)
        return PointerEnds(self.work, self.policy, self.retire, self.uuid_of, current, self.take_over)

    def _publish(self, naming: Naming, branch: str, ask: Asking) -> PointerStatus:
        publisher = Publisher(self.work.store, naming, self._is_registered, branch, self.take_over)
        done = publisher.publish(ask)
        return _told(done, self.work, _last(ask))

    def _is_registered(self, pointer: Pointer) -> bool:
        return is_registered(self.uuid_of, pointer)

    def _hint(self, ask: Asking) -> PointerStatus:
        key, outcome = HintPublisher(self.work.store, partial(self._is_ours, _last(ask))).publish(ask)
        return PointerStatus(key, outcome, MAIN, _last(ask).fence)

    def _is_ours(self, state: State, place: str, guid: str) -> bool:
        """Tells whether metadata is gone, or a version of this table. A version that the table's log does not have may
        be one of another registration: then the hint would go to and fro between the two.
        """
        table_format = self.work.source.format
        found = table_format.table_of(place)
        versions = table_format.versions(state) if isinstance(table_format, KeepsVersions) else []
        if found is None or identity(place) in {identity(each) for each, _ in versions}:
            return True
        return found.uuid == guid and not self._is_registered_twice(state)

    def _is_registered_twice(self, state: State) -> bool:
        """Tells by the pointers in the folder: each registration has its own, or the one that is there is another's."""
        name = self.work.source.name
        own = written((*name.namespace, name.name))
        told = (each.pointer for each in pointers_of(self.work.store, state.location))
        others = (each for each in told if each.guid == state.uuid and each.table_identifier != own)
        return any(self._is_registered(each) for each in others if not each.is_over)


def _or_why_not(key: str, branch: str, publish: Callable[[], PointerStatus]) -> PointerStatus:
    """Returns what became of one pointer, also if that is a problem: the others are none the worse. That the table is
    gone is a problem of all.
    """
    try:
        return publish()
    except NoSuchTable:
        raise
    except FirnlineError as problem:
        return PointerStatus.failed(key, branch, problem)


def _last(ask: Asking) -> State:
    if ask.state is None:
        raise RefusedForSafety("the catalog was not asked", hint="this is a bug; please report it")
    return ask.state


def _told(done: Publication, work: TableContext, state: State) -> PointerStatus:
    late = None if done.before is None else behind(work.source.format, state, done.before)
    pointer = done.pointer
    return PointerStatus(done.key, done.outcome, pointer.branch, pointer.metadata_file_path, pointer.ordinal, late)
