"""Publishing all pointers of a table, and ending what its folder has of earlier names."""

from __future__ import annotations

from dataclasses import dataclass

from firnline.errors import RefusedForSafety
from firnline.model.snapshots import MAIN
from firnline.ops.pointers.ending import PointerEnds, UuidOf
from firnline.ops.pointers.policy import PointerPolicy, PointerStatus
from firnline.ops.pointers.truth import Asking, behind
from firnline.ops.table.context import TableContext
from firnline.pointers.hints import HintPublisher
from firnline.pointers.publishing import Publication, Published, Publisher
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
        found = self._published()
        return [*found, *(self._ended(found) if any(each.outcome == Published.NEW for each in found) else ())]

    def sync(self) -> list[PointerStatus]:
        """Returns the same, with whatever else lies in the folder ended or taken away."""
        found = self._published()
        return [*found, *self._ended(found)]

    def _published(self) -> list[PointerStatus]:
        ask = Asking(self.work)
        ask()
        found = [self._publish(branch, ask) for branch in self.policy.chosen(_last(ask))]
        return [*found, self._hint(ask)] if self.policy.hint else found

    def _ended(self, found: list[PointerStatus]) -> list[PointerStatus]:
        current = frozenset(each.key for each in found)
        return list(PointerEnds(self.work, self.policy, self.retire, self.uuid_of, current).settle())

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


def _last(ask: Asking) -> State:
    if ask.state is None:
        raise RefusedForSafety("the catalog was not asked", hint="this is a bug; please report it")
    return ask.state


def _told(done: Publication, work: TableContext, state: State) -> PointerStatus:
    late = None if done.before is None else behind(work.source.format, state, done.before)
    pointer = done.pointer
    return PointerStatus(done.key, done.outcome, pointer.branch, pointer.metadata_file_path, pointer.ordinal, late)
