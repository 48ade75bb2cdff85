"""Where unfinished runs are: found by the lists of them, so that a lake of thousands of tables is not gone through.

A list only says where to look. What is done there is done by the runs' own records, as if the table had been named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from firnline.app.many import on_each
from firnline.app.places import Places
from firnline.app.run_lists import FoundEntry, Problem, Statuses, has_list, read_lists
from firnline.app.runs import Runs
from firnline.errors import FirnlineError, NoSuchTable, PolicyError
from firnline.journal.unfinished import RunEntry
from firnline.model.locations import within
from firnline.model.times import DAY_MS
from firnline.ops.table.context import Registered, has_uuid
from firnline.plans.answers import TableAnswer
from firnline.policy.inherit import effective
from firnline.ports.catalogs import TableName

LEAST_AGE_MS = DAY_MS
"""An entry whose run is nowhere stays for so long: the record of one is written right after its entry."""

GONE_FOR_MS = 90 * DAY_MS
"""One whose table is nowhere stays far longer: a table that is dropped and registered again, or renamed while its
catalog is listed, is back with the run in its records, and nothing else than the entry leads there.
"""


@dataclass(frozen=True, slots=True)
class Lead:
    """A table to be looked at, and the entries that lead to it; none for a table that is on no list."""

    table: TableName
    entries: tuple[FoundEntry, ...] = ()

    def __str__(self) -> str:
        return str(self.table)


@dataclass(frozen=True, slots=True)
class UnfinishedRuns:
    """The runs that lists lead to, and those of tables that are on no list: a look at each of these, as there is no
    records root for them.
    """

    places: Places
    runs: Runs
    at_once: int

    def look(self) -> Iterator[TableAnswer[Statuses]]:
        """Yields the unfinished runs of each table that has any. Changes nothing."""
        return self._each(self.runs.unfinished, tidy=False)

    def act(self, act: Callable[[TableName], Statuses]) -> Iterator[TableAnswer[Statuses]]:
        """Yields what `act` returns for each table that has unfinished runs. Entries of runs that have ended are
        removed, and old ones of which nothing is left.
        """
        return self._each(act, tidy=True)

    def _each(self, act: Callable[[TableName], Statuses], *, tidy: bool) -> Iterator[TableAnswer[Statuses]]:
        places = self.places
        found, unread = read_lists(places, self.at_once)
        here, lost = self._located(found)
        moved, nowhere, unclear = self._moved(lost)
        unlisted, closed = self._unlisted()
        leads = _by_table([*here, *moved, *((table, None) for table in unlisted)])

        def followed(lead: Lead) -> Statuses:
            answer = act(lead.table)
            if tidy and lead.entries:
                with suppress(FirnlineError):  # what was done is told, whatever becomes of entries
                    self._tidy(lead)
            return answer

        yield from (*unread, *closed, *unclear)
        yield from on_each(leads, followed, self.at_once, places.interrupted, places.progress)
        if tidy:
            self._forget(nowhere)

    # ---- from an entry to its table

    def _located(self, found: Iterable[FoundEntry]) -> tuple[list[tuple[TableName, FoundEntry]], list[FoundEntry]]:
        """Returns the entries whose table is still what it was, with its name here; and those that are lost: their
        table is gone, was renamed, or another one has its name. Entries of catalogs that are not configured here, also
        of one that is only called alike, are the affair of those who have them. A table that cannot be read answers for
        itself when it is looked at.
        """
        named = [(name, each) for each in found if (name := self._name_of(each.entry)) is not None]
        with ThreadPoolExecutor(max(1, self.at_once)) as pool:
            uuids = dict(pool.map(self._uuid_of, {name for name, _ in named}))
        is_here = [uuids[name] in (each.entry.uuid, _UNREAD) for name, each in named]
        here = [pair for pair, holds in zip(named, is_here, strict=True) if holds]
        ours = {self._address(name) for name in self.places.catalogs.configured}
        lost = [each for (_, each), holds in zip(named, is_here, strict=True) if not holds]
        return here, [each for each in lost if each.entry.address in ours]

    def _name_of(self, entry: RunEntry) -> TableName | None:
        """Returns the entry's table as the catalogs of this configuration call it; None if it is in none of them."""
        configured = self.places.catalogs.configured
        same = [name for name in configured if self._address(name) == entry.address]
        own = entry.table.catalog
        if own in configured and (own in same or not same):
            return entry.table
        return TableName(same[0], entry.table.namespace, entry.table.name) if same else None

    def _address(self, catalog: str) -> str | None:
        try:
            return self.places.catalogs.settings(catalog).address
        except FirnlineError:
            return None

    def _uuid_of(self, name: TableName) -> tuple[TableName, str | None]:
        """Returns the uuid of the table that has this name now; None if there is none."""
        try:
            return name, self.places.source(name).load().uuid
        except NoSuchTable:
            return name, None
        except (
            Exception
        ):  # a name is anybody's word; what it does to a driver is told of it alone, when it is looked at
            return name, _UNREAD

    def _moved(
        self, lost: list[FoundEntry]
    ) -> tuple[list[tuple[TableName, FoundEntry]], list[FoundEntry], list[Problem]]:
        """Returns the lost entries whose table has another name now, with it; those whose table is nowhere; and what is
        wrong where nobody can tell. The catalogs are listed once for all of them, and not if there is none.
        """
        moved: list[tuple[TableName, FoundEntry]] = []
        nowhere: list[FoundEntry] = []
        problems: list[Problem] = []
        try:
            listed = list(self.places.other_tables.registered(())) if lost else []
        except FirnlineError as problem:
            return [], [], [TableAnswer(str(each.entry.table), problem=problem) for each in lost]
        for each in lost:
            try:
                names = [(other.name, each) for other in listed if self._is_it(other, each.entry)]
                moved += names
                nowhere += [] if names else [each]
            except FirnlineError as problem:
                problems.append(TableAnswer(str(each.entry.table), problem=problem))
        return moved, nowhere, problems

    def _is_it(self, other: Registered, entry: RunEntry) -> bool:
        """Tells whether a registered table is the one of the entry. Its metadata still lies in the same
        folder, if a listing tells of that; if not, every table must be asked.
        """
        if other.name.catalog not in self.places.catalogs.configured:
            return False
        may_be = other.metadata is None or within(entry.metadata, other.metadata)
        return may_be and has_uuid(other, entry.uuid)

    # ---- tables that are on no list

    def _unlisted(self) -> tuple[list[TableName], list[Problem]]:
        """Returns the tables for which no records root is configured, and which catalogs cannot tell. A catalog that
        has one as a whole is not asked.
        """
        catalogs = self.places.catalogs
        listed, unread = catalogs.readable(name for name in catalogs.configured if not has_list(self.places, name))
        problems: list[Problem] = [
            TableAnswer(name, problem=problem, of_catalog=True) for name, problem in unread.items()
        ]
        return [each for each in listed if self._is_unlisted(each)], problems

    def _is_unlisted(self, table: TableName) -> bool:
        """Tells whether no list has the runs of a table; also if its policy is in doubt, which its own look tells."""
        try:
            config = self.places.config
            return effective(config, table.catalog, table.namespace, table.name).records.value is None
        except PolicyError:
            return True

    # ---- what a list need not have any more

    def _tidy(self, lead: Lead) -> None:
        """Removes the entries of runs that have ended, and old ones without a run."""
        unfinished, ended = self.runs.stamps(lead.table)
        for each in lead.entries:
            if each.entry.stamp in ended or (each.entry.stamp not in unfinished and self._is_old(each, LEAST_AGE_MS)):
                each.remove()

    def _forget(self, nowhere: Iterable[FoundEntry]) -> None:
        """Removes old entries of tables that a catalog of ours had and that are in none any more."""
        for each in nowhere:
            if self._is_old(each, GONE_FOR_MS):
                each.remove()

    def _is_old(self, each: FoundEntry, least_ms: int) -> bool:
        return each.modified_ms is not None and self.places.clock() - each.modified_ms > least_ms


_UNREAD = ""
"""Stands for the uuid of a table that is there and cannot be read."""


def _by_table(pairs: Iterable[tuple[TableName, FoundEntry | None]]) -> list[Lead]:
    """Returns each table once, with all entries that lead to it: two threads must not work on one."""
    found: dict[TableName, list[FoundEntry]] = {}
    for table, entry in pairs:
        found.setdefault(table, []).extend([] if entry is None else [entry])
    return [Lead(table, tuple(entries)) for table, entries in found.items()]
