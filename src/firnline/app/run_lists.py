"""Reading the lists of unfinished runs: every entry that is there, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firnline.app.places import Places
from firnline.app.stores import store_settings
from firnline.errors import FirnlineError, ObjectNotFound
from firnline.journal.unfinished import RunEntry, entry_key, listed_objects, read_entry
from firnline.model.locations import identity, parse_location
from firnline.ops.runs.status import RunStatus
from firnline.plans.answers import TableAnswer
from firnline.policy.parse import written_values
from firnline.policy.written.entries import sections_of_catalog
from firnline.ports.discard import OwnKey

if TYPE_CHECKING:
    from firnline.ports.discard import Discard
    from firnline.ports.stores import ObjectMeta, ReadWrite

_SETTING = "records"
Statuses = list[RunStatus]
Problem = TableAnswer[Statuses]


def has_lists(places: Places) -> bool:
    """Tells whether a records root is configured for any table: then there are lists of unfinished runs."""
    return any(True for _ in written_values(places.config, _SETTING))


def has_list(places: Places, catalog: str) -> bool:
    """Tells whether a records root is configured for all tables of a catalog."""
    config = places.config
    return any(_SETTING in each.settings for each in (config, *sections_of_catalog(config, catalog)))


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry as it was found: who can remove it, and when it was written by the store's clock."""

    entry: RunEntry
    key: OwnKey
    discard: Discard = field(repr=False)
    modified_ms: int | None

    def remove(self) -> None:
        self.discard.discard([self.key])


@dataclass(frozen=True, slots=True)
class RunList:
    """One list of unfinished runs, and the store that it is in."""

    records: str
    store: ReadWrite = field(repr=False)
    discard: Discard = field(repr=False)

    def read(self, at_once: int) -> Iterator[FoundEntry | Problem]:
        """Yields every entry, and what is wrong with the list or with an object in it: that hides no other entry."""
        try:
            listed = [each for each in listed_objects(self.store, self.records) if not each.key.endswith("/")]
        except FirnlineError as problem:
            hint = "`--all` looks at every table instead of the list of unfinished runs"
            yield TableAnswer(self.records, problem=type(problem)(problem.message, hint))
            return
        with ThreadPoolExecutor(max(1, at_once)) as pool:
            yield from (each for each in pool.map(self._found, listed) if each is not None)

    def _found(self, listed: ObjectMeta) -> FoundEntry | Problem | None:
        """Returns an entry, what is wrong with it, or None if it is gone: its run ended just now."""
        try:
            entry = read_entry(self.store, self.records, listed.key)
        except ObjectNotFound:
            return None
        except FirnlineError as problem:
            return TableAnswer(listed.key, problem=problem)
        key = entry_key(self.records, entry.uuid, entry.stamp)
        return FoundEntry(entry, key, self.discard, listed.modified_ms)


def read_lists(places: Places, at_once: int) -> tuple[list[FoundEntry], list[Problem]]:
    """Returns every entry once, and what is wrong with lists and with objects among them."""
    found: dict[OwnKey, FoundEntry] = {}
    problems: list[Problem] = []
    for each in (one for run_list in _lists(places) for one in run_list.read(at_once)):
        if isinstance(each, FoundEntry):
            found.setdefault(each.key, each)
        else:
            problems.append(each)
    return list(found.values()), problems


def _lists(places: Places) -> Iterator[RunList]:
    """Yields the list under every records root that counts for any table of a catalog, each once, in the store that
    the catalog's own settings reach.
    """
    config, stores = places.config, places.stores
    above = [config.settings[_SETTING].value] if _SETTING in config.settings else []
    seen: set[tuple[str, frozenset[tuple[str, str]]]] = set()
    for name, catalog in places.catalogs.configured.items():
        settings = store_settings(catalog.properties)
        said = [each for section in sections_of_catalog(config, name) for each in written_values(section, _SETTING)]
        for records in (*above, *said):
            is_local = parse_location(records).scheme == "file"  # there no setting of a store counts
            at = identity(records).rstrip("/"), frozenset(() if is_local else settings.items())
            if at not in seen:
                seen.add(at)
                yield RunList(records, stores.open(settings), stores.discard(settings))
