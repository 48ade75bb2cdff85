"""Watching catalogs: one look at each, and what moved since the last is published."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from firnline.app.pointers.verbs import LakePointers, SyncedTable
from firnline.errors import FirnlineError
from firnline.ports.catalogs import TableName, WatchedInOneQuery

Look = Callable[[], Iterable[tuple[TableName, str | None]]]


@dataclass
class PointerWatch:
    """Looks at every configured catalog and publishes the tables whose metadata moved on. The first look finds all
    that a policy asks for: what happened while nobody watched.

    A catalog that cannot be read is told once for each look and does not stop the others; neither does a table, which
    is tried again at the next look.
    """

    pointers: LakePointers
    _known: dict[TableName, str] = field(default_factory=dict, init=False, repr=False)
    _wanted: dict[TableName, bool] = field(default_factory=dict, init=False, repr=False)
    _looks: dict[str, Look] = field(default_factory=dict, init=False, repr=False)
    unread: dict[str, FirnlineError] = field(default_factory=dict, init=False)

    def look(self) -> Iterator[SyncedTable]:
        """Yields what became of each table that moved on."""
        self.unread = {}
        for catalog in self.pointers.places.catalogs.configured:
            try:
                found = list(self._listed(catalog))
            except FirnlineError as problem:
                self._looks.pop(catalog, None)
                self.unread[catalog] = problem
                continue
            yield from self._moved(catalog, found)

    def _moved(self, catalog: str, found: Sequence[tuple[TableName, str | None]]) -> Iterator[SyncedTable]:
        asked = [(name, place) for name, place in found if self._is_wanted(name)]
        self._forget(catalog, {name for name, _ in asked})
        for name, place in asked:
            if place is not None and self._known.get(name) == place:
                continue
            first = name not in self._known
            done = self.pointers.sync_one(name) if first else self.pointers.publish_one(name)
            if done.problem is None and place is not None:
                self._known[name] = place
            if done.problem is not None or any(each.outcome != "unchanged" for each in done.pointers):
                yield done

    def _forget(self, catalog: str, there: set[TableName]) -> None:
        gone = [name for name in self._known if name.catalog == catalog and name not in there]
        for name in gone:
            del self._known[name]

    def _is_wanted(self, name: TableName) -> bool:
        if name not in self._wanted:
            self._wanted[name] = self.pointers.is_wanted(name)
        return self._wanted[name]

    def _listed(self, catalog: str) -> Iterable[tuple[TableName, str | None]]:
        if catalog not in self._looks:
            opened = self.pointers.places.catalogs.open(catalog)
            self._looks[catalog] = opened.watched() if isinstance(opened, WatchedInOneQuery) else opened.pointers
        return self._looks[catalog]()
