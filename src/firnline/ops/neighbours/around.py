"""What the other tables of the lake mean for one: what they need of its files, and which of its folders are theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from firnline.errors import RefusedForSafety, UnreadableMetadata
from firnline.model.files import File, Root
from firnline.model.locations import stem_of
from firnline.ops.neighbours.cards import Card
from firnline.ops.neighbours.others import FindOthers, Others, others_now
from firnline.ops.orphans.neighbours import Here, Neighbour, by_server
from firnline.ops.reachability.live_roots import forbidden, live_roots
from firnline.ops.runs.decision import policy_in_force
from firnline.ops.table.context import Registered, TableContext
from firnline.ops.table.sources import mirrored, way_out
from firnline.plans.plan import Conflict
from firnline.plans.request import Request
from firnline.policy.values import NONE
from firnline.ports.catalogs import TableName
from firnline.ports.engines import ServerRoots
from firnline.ports.formats import State
from firnline.ports.stores import AS_CALLED, RealNames

_LOOKS = 5
_NAME_IT = "name it under `shared-with` in firnline.yaml, so that all it needs counts; or drop one of the two"


class AskedTable(Protocol):
    """A table that is asked what it needs."""

    @property
    def name(self) -> TableName: ...

    def opened(self) -> tuple[TableContext, State]: ...


Needed = tuple[AskedTable, File]
"""A root, and the table that needs it."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """Metadata of another format over a table's own files. It has no name beside that of the document itself."""

    registered: Registered

    @property
    def name(self) -> TableName:
        return self.registered.name

    def opened(self) -> tuple[TableContext, State]:
        work = self.registered.open()
        return work, work.source.load()


@dataclass(frozen=True, slots=True)
class Around:
    """What other tables mean for one. `asked` is how many there are; None where the operator says that none counts.

    `conflict` says why nothing of the table may go; `holes` are folders of others inside its own, and all others where
    files outside may go; `elsewhere` is what others need and may find in the rest. `real` tells what files are really
    called.
    """

    asked: int | None
    conflict: Conflict | None = None
    holes: tuple[str, ...] = ()
    elsewhere: tuple[ServerRoots, ...] = ()
    notes: tuple[str, ...] = ()
    real: RealNames = AS_CALLED

    def refuse_conflict(self) -> None:
        """Raises RefusedForSafety if another table is in doubt."""
        if self.conflict is not None:
            raise RefusedForSafety(self.conflict.why, hint=self.conflict.hint)


def around(
    work: TableContext,
    state: State,
    *,
    everywhere: bool,
    but: str | None = None,
    find: FindOthers = others_now,
) -> Around:
    """Returns what the other tables mean for this one, read just now unless `find` says otherwise.

    `everywhere`: files outside its folders may go too, so all that others need counts. `but` is the stamp of a run that
    does not count. Raises RefusedForSafety if any table cannot be read.
    """
    mirrors = _of_mirrors(work, state, but)
    sharing, named = _asked(work, state)
    if sharing == NONE:
        unasked = "other tables were not asked what they need: sharing is none in firnline.yaml"
        needed = _reached_from(work, mirrors)
        return Around(None, _mirrored(state), elsewhere=needed, notes=(unasked,), real=work.real)
    lake = find(work, state, named)
    conflict = _conflict(lake, state, work.now())
    if conflict is not None:
        needed = _reached_from(work, [*mirrors, *_all_needs(lake.doubted(state), work.now(), but)])
        return Around(len(lake.tables), conflict, elsewhere=needed, real=work.real)
    holes = lake.holes(everywhere)
    elsewhere = _elsewhere(work, lake, mirrors, everywhere, but)
    called = _as_called(holes, state, work.real)
    return Around(len(lake.tables), None, called, elsewhere, tuple(_notes(lake, holes)), work.real)


def refuse_conflict(work: TableContext, state: State) -> None:
    """Raises RefusedForSafety if another table is registered for the same files or uses the same folders, and the
    operator does not name it. Opens no unit of any table.
    """
    sharing, named = _asked(work, state)
    alone = sharing == NONE
    found = _mirrored(state) if alone else _conflict(others_now(work, state, named), state, work.now())
    Around(0, found).refuse_conflict()


def is_registered_elsewhere(work: TableContext, state: State) -> bool:
    """Tells whether the same table has another registration, whose metadata may be any older version of this one's.

    Opens no unit of any table. Raises RefusedForSafety if one cannot be read.
    """
    sharing, named = _asked(work, state)
    return sharing != NONE and bool(others_now(work, state, named).same(state.uuid))


def _asked(work: TableContext, state: State) -> tuple[str, tuple[str, ...]]:
    effective = policy_in_force(state, work.source.name, work.config, Request())
    return effective.sharing.value, effective.shared_with.value


def _mirrored(state: State) -> Conflict | None:
    told = mirrored(state)
    return None if told is None else Conflict(told, way_out(state))


def _conflict(lake: Others, state: State, now_ms: int) -> Conflict | None:
    """Returns why nothing may go; None if nothing is in doubt."""
    why = _doubt(lake, state, now_ms)
    return _mirrored(state) or (None if why is None else Conflict(why, _NAME_IT))


def _doubt(lake: Others, state: State, now_ms: int) -> str | None:
    for each in lake.same(state.uuid):
        if not lake.is_named(each):
            return f"{each.name} is the same table as {state.table}: both are registered for {state.uuid}"
        _, other = each.opened()
        reason = forbidden(other, now_ms)
        if reason is not None:
            return f"nothing of {each.name}, which is the same table as {state.table}, may be removed now: {reason}"
    for each, folder in lake.sharers():
        if not lake.is_named(each):
            return f"{each.name} uses the folder {folder} of {state.table} too"
    return None


def _notes(lake: Others, holes: Sequence[str]) -> Iterator[str]:
    """Yields what a person should know: another table lies where this one's writers put their files."""
    for hole in holes:
        if any(hole.startswith(written) for written in lake.mine.written):
            yield f"the folder {hole} belongs to another table: what lies there stays"


def _as_called(holes: Sequence[str], state: State, real: RealNames) -> tuple[str, ...]:
    """Returns real folders, and beside them what they are called by the links that lead to the table's own folders: not
    every engine compares real names.
    """
    own = [(real(stem), stem) for stem in map(stem_of, state.owned)]
    called = (stem + hole[len(there) :] for hole in holes for there, stem in own if hole.startswith(there))
    return tuple(dict.fromkeys((*holes, *called)))


def _elsewhere(
    work: TableContext, lake: Others, mirrors: Sequence[Needed], everywhere: bool, but: str | None
) -> tuple[ServerRoots, ...]:
    """Returns what others and `mirrors` need that may be a file of this table."""
    now_ms = work.now()
    stems = None if everywhere else lake.mine.owned
    walked = (each for each in lake.walked(now_ms) if each.card.bridges)
    found = [(each, file) for each in walked for file in _bridges(each.card, stems)]
    whole = [each for each in lake.tables.values() if lake.is_named(each) or (everywhere and lake.is_around(each))]
    return _reached_from(work, [*found, *mirrors, *_all_needs(whole, now_ms, but)])


def _of_mirrors(work: TableContext, state: State, but: str | None) -> list[Needed]:
    """Returns all that the table's mirrors need. Its writers replace one by the next with every commit: where one went
    while they were read, they are looked at again.

    Raises UnreadableMetadata if one that is still there cannot be read: it may need any file.
    """
    for _ in range(_LOOKS):
        mirrors = [Mirror(each) for each in work.mirrors(state.format, state.location)]
        try:
            return list(_all_needs(mirrors, work.now(), but))
        except UnreadableMetadata:
            if {each.name for each in work.mirrors(state.format, state.location)} == {each.name for each in mirrors}:
                raise
    raise UnreadableMetadata(
        f"the metadata over the files of {state.table} changes faster than it can be read", hint="try again"
    )


def _all_needs(tables: Sequence[AskedTable], now_ms: int, but: str | None) -> Iterator[Needed]:
    return ((each, file) for each in tables for file in _needs(each, now_ms, but))


def _reached_from(work: TableContext, found: Sequence[Needed]) -> tuple[ServerRoots, ...]:
    owners = {id(each): Neighbour(*each.opened()) for each, _ in found}
    needed = ((owners[id(each)], Root(file, True, str(each.name))) for each, file in found)
    parts = by_server(list(owners.values()), needed, Here(work.source.format.expand, work.server))
    return tuple(part for part in parts if part.roots)


def _needs(table: AskedTable, now_ms: int, but: str | None) -> Iterator[File]:
    """Yields all that a table needs. Another registration of the same table keeps the same records: `but` is the run
    that does not count there either.
    """
    work, state = table.opened()
    return (root.file for root in live_roots(work, state, now_ms, but))


def _bridges(card: Card, stems: Sequence[str] | None) -> Iterator[File]:
    return (each.file for each in card.bridges if stems is None or each.leads_into(stems))
