"""Reading every table that catalogs list, while tables come, go and take each other's names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from firnline.errors import RefusedForSafety
from firnline.ops.table.context import Registered
from firnline.ports.catalogs import TableName

_MOST_LISTINGS = 16
ListTables = Callable[[bool], Iterable[Registered]]
"""Lists tables. It is told whether the last listing had a name that is gone: then one from before will not do."""


Read = TypeVar("Read")
At = tuple[str, TableName]


def read_all(
    listed: ListTables,
    read: Callable[[Sequence[Registered]], Iterable[Read | None]],
    uuid_of: Callable[[Read], str],
) -> list[Read]:
    """Returns what `read` makes of all tables, None standing for one whose name is gone: until a listing has no name
    that was not read, nor one that may be another table's by now. Raises RefusedForSafety if there is no end to it.

    A table that is renamed, or moves to another catalog, while names are listed or read one after the other has
    neither its old name any more nor its new one yet: it would count as dropped. Nor is it met under a new name that
    was another table's when that was read:

    1. The names `t` and `t_new` are listed, and `t` is read.
    2. `t` is renamed to `t_old`, and `t_new` to `t`: the usual way to put a table in another's place.
    3. The name `t_new` is gone, `t` was read, `t_old` is new. Nobody asked what `t` is now.
    """
    known = _Known(uuid_of)
    for _ in range(_MOST_LISTINGS):
        due = [each for each in listed(known.is_gone) if known.is_due(each)]
        if due:
            known.take(due, list(read(due)))
        if not due or known.is_settled:
            return [answer for _, answer in known.found.values()]
    raise RefusedForSafety(
        f"{due[0].name} is listed by its catalog, and gone or another table whenever it is read",
        hint="try again when that has settled",
    )


@dataclass(slots=True)
class _Known(Generic[Read]):
    """What was read of tables, each with how it was listed. `doubted` are names of which no listing tells whether they
    are another table's by now.
    """

    uuid_of: Callable[[Read], str]
    found: dict[At, tuple[Registered, Read]] = field(default_factory=dict)
    doubted: Set[At] = frozenset()
    twice: set[str] = field(default_factory=set)
    is_gone: bool = False
    is_settled: bool = False
    has_begun: bool = False

    def is_due(self, each: Registered) -> bool:
        """Tells whether a listed table is to be read: its name is new, or may have been given to another one."""
        if each.at not in self.found:
            return True
        before = self.found[each.at][0].metadata
        return each.at in self.doubted if each.metadata is None else each.metadata != before

    def take(self, due: Sequence[Registered], answers: Sequence[Read | None]) -> None:
        """Notes what was read. A name that is gone, new or another table's casts doubt on all that was read before; a
        uuid that has two names, on these two: a table may have been read before and after it got the other's name.
        """
        self.is_gone = any(answer is None for answer in answers)
        read = {each.at: (each, answer) for each, answer in zip(due, answers, strict=True) if answer is not None}
        is_new = self.has_begun and any(at not in self.found for at in read)
        is_another = any(self._uuid(self.found[at]) != self._uuid(read[at]) for at in read if at in self.found)
        self.found |= read
        twice = self._twice() - self.twice
        self.twice |= twice
        strange = self.is_gone or is_new or is_another
        self.doubted = {at for at, each in self.found.items() if strange or self._uuid(each) in twice}
        self.is_settled = self.has_begun and not strange and not twice
        self.has_begun = True

    def _uuid(self, each: tuple[Registered, Read]) -> str:
        return self.uuid_of(each[1])

    def _twice(self) -> set[str]:
        counted = Counter(map(self._uuid, self.found.values()))
        return {uuid for uuid, count in counted.items() if uuid and count > 1}
