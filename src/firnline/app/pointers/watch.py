"""Watching catalogs: one look at each, and what moved since the last is published."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from firnline.app.pointers.verbs import LakePointers, SyncedTable
from firnline.errors import FirnlineError
from firnline.model.times import DAY_MS
from firnline.ops.pointers.policy import FAILED
from firnline.pointers.publishing import Published
from firnline.ports.catalogs import TableName, WatchedInOneQuery
from firnline.side_by_side import answers

CLEANED_EVERY_MS = DAY_MS
CLEANED_AT_ONCE = 50

Look = Callable[[], Iterable[tuple[TableName, str | None]]]


@dataclass
class PointerWatch:
    """Looks at every configured catalog and publishes the tables whose metadata moved on. The first look finds all
    that a policy asks for: what happened while nobody watched.

    A catalog that cannot be read is told once for each look and does not stop the others; neither does a table, which
    is tried again at the next look, and told of again if something else is wrong with it.
    """

    pointers: LakePointers
    _known: dict[TableName, str] = field(default_factory=dict, init=False, repr=False)
    _synced_ms: dict[TableName, int] = field(default_factory=dict, init=False, repr=False)
    _wrong: dict[TableName, list[str]] = field(default_factory=dict, init=False, repr=False)
    _wanted: dict[TableName, bool] = field(default_factory=dict, init=False, repr=False)
    _looks: dict[str, Look] = field(default_factory=dict, init=False, repr=False)
    unread: dict[str, FirnlineError] = field(default_factory=dict, init=False)

    def look(self) -> Iterator[SyncedTable]:
        """Yields what became of each table that moved on, or that was due to be looked at as a whole."""
        self.unread = {}
        catalogs = list(self.pointers.places.catalogs.configured)
        listed = answers(catalogs, lambda catalog: list(self._listed(catalog)))
        for catalog, found in zip(catalogs, listed, strict=True):
            if isinstance(found, FirnlineError):
                self._looks.pop(catalog, None)
                self.unread[catalog] = found
            else:
                yield from self._published(catalog, found)

    def _published(self, catalog: str, found: Sequence[tuple[TableName, str | None]]) -> Iterator[SyncedTable]:
        asked = [(name, place) for name, place in found if self._is_wanted(name)]
        self._forget(catalog, {name for name, _ in asked})
        due = self._due(catalog)
        for name, place in asked:
            has_moved = place is None or self._known.get(name) != place
            if has_moved or name in due:
                yield from self._told(name, self._done(name, place, as_a_whole=name not in self._known or name in due))

    def _done(self, name: TableName, place: str | None, as_a_whole: bool) -> SyncedTable:
        done = self.pointers.sync_one(name) if as_a_whole else self.pointers.publish_one(name)
        if as_a_whole:
            self._synced_ms[name] = self._now()
        if place is not None and not done.problems:
            self._known[name] = place
        return done

    def _told(self, name: TableName, done: SyncedTable) -> Iterator[SyncedTable]:
        wrong = [str(each) for each in done.problems]
        is_news = wrong != self._wrong.get(name, [])
        self._wrong[name] = wrong
        quiet = (Published.UNCHANGED, FAILED)
        if is_news or any(each.outcome not in quiet for each in done.pointers):
            yield done

    def _due(self, catalog: str) -> set[TableName]:
        """Returns tables whose folders were not looked at for a day, the first of them: links have to be brought on,
        and expired ones to go, also if nothing moves. Some at a time, or one look would hold up all others; of each
        catalog its own, or one that does not answer would keep the others waiting.
        """
        late = self._now() - CLEANED_EVERY_MS
        waiting = (name for name, ms in self._synced_ms.items() if name.catalog == catalog and ms <= late)
        return set(islice(waiting, CLEANED_AT_ONCE))

    def _now(self) -> int:
        return self.pointers.places.clock()

    def _forget(self, catalog: str, there: set[TableName]) -> None:
        gone = [name for name in self._synced_ms if name.catalog == catalog and name not in there]
        for name in gone:
            for known in (self._known, self._synced_ms, self._wrong):
                known.pop(name, None)

    def _is_wanted(self, name: TableName) -> bool:
        if name not in self._wanted:
            self._wanted[name] = self.pointers.is_wanted(name)
        return self._wanted[name]

    def _listed(self, catalog: str) -> Iterable[tuple[TableName, str | None]]:
        if catalog not in self._looks:
            opened = self.pointers.places.catalogs.open(catalog)
            self._looks[catalog] = opened.watched() if isinstance(opened, WatchedInOneQuery) else opened.pointers
        return self._looks[catalog]()
