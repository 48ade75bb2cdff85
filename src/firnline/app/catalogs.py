"""Which catalogs there are, which tables they list, and which of them a text names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError, NoSuchTable, UsageError
from firnline.model.names import is_location, is_pattern, parts_of, refuse_no_text, written
from firnline.policy.parse import Section
from firnline.ports.catalogs import Catalog, TableName
from firnline.side_by_side import all_answers, answers

if TYPE_CHECKING:
    from firnline.catalogs.config import CatalogSettings

Table = str | TableName
"""A table as a caller names it: by a text, or by the value that a listing gave."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The tables that some names mean, each once. `missing` is why a name means none, `unread` why a catalog of which a
    pattern may mean tables cannot be read: among several neither stops the others.
    """

    tables: list[TableName]
    missing: Mapping[str, FirnlineError]
    unread: Mapping[str, FirnlineError]

    def unless_alone(self) -> Selection:
        """Returns the same. Raises what is wrong with a name that stands alone: then there is nothing else to do."""
        if not self.tables and not self.unread and len(self.missing) == 1:
            raise next(iter(self.missing.values()))
        return self


@dataclass
class Catalogs:
    """The catalogs that the operator configured, and those that keep their tables in the same database. Those of
    `tiers` read as empty until something was handed over.
    """

    tiers: frozenset[str] = frozenset()
    _unconfigured: dict[str, CatalogSettings] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def configured(self) -> Mapping[str, CatalogSettings]:
        """The configured catalogs, none of them opened: one that cannot be read must not hide the others."""
        from firnline.catalogs.config import load_catalogs

        found = load_catalogs()
        return {name: replace(each, may_be_new=name in self.tiers) for name, each in found.items()}

    def settings(self, catalog: str) -> CatalogSettings:
        return self.configured.get(catalog) or self._unconfigured[catalog]

    def open(self, name: str) -> Catalog:
        from firnline.catalogs.config import open_catalog

        return open_catalog(self.settings(name))

    def tables(self, catalog: str | None = None) -> list[TableName]:
        """Returns every table of every configured catalog, or of one. Raises UsageError for one that is not."""
        if catalog is not None and catalog not in self.configured:
            known = ", ".join(self.configured) or "none"
            raise UsageError(f"no catalog {catalog!r}", hint=f"configured are: {known}")
        return self._tables_of(self.configured if catalog is None else [catalog])

    def readable(self, among: Iterable[str] | None = None) -> tuple[list[TableName], dict[str, FirnlineError]]:
        """Returns the tables of every configured catalog that can be read, or of those `among` them, and what is wrong
        with each other one.
        """
        names = list(self.configured if among is None else among)
        found: list[TableName] = []
        unread: dict[str, FirnlineError] = {}
        for name, answer in zip(names, answers(names, self._listed_in), strict=True):
            if isinstance(answer, FirnlineError):
                unread[name] = answer
            else:
                found += answer
        return found, unread

    def _tables_of(self, names: Iterable[str]) -> list[TableName]:
        """Returns the tables of some catalogs. Raises what is wrong with the first that cannot be read."""
        return [table for tables in all_answers(list(names), self._listed_in) for table in tables]

    def _listed_in(self, catalog: str) -> list[TableName]:
        return list(self.open(catalog).tables())

    def refuse_unknown_names(self, config: Section) -> None:
        """Raises PolicyError unless every catalog, namespace and table that a configuration names exists."""
        from firnline.policy.written.entries import check_names

        if config.inside:
            check_names(
                config, self.configured, lambda name: ((each.namespace, each.name) for each in self.tables(name))
            )

    def everyone(self) -> Iterator[TableName]:
        """Yields every table whose needs count: of each configured catalog, and of those that nobody configured and
        that keep their tables in the same database.
        """
        yield from self.tables()
        yield from self._tables_of(self._neighbours())

    def may_list(self, table: str) -> bool:
        """Tells whether the catalog that a table's name begins with is configured."""
        return any(table.startswith(f"{written((name,))}.") for name in self.configured)

    def pointers(self) -> Iterator[tuple[TableName, str | None]]:
        """Yields every table whose needs count, with its metadata's location where a listing tells."""
        names = [*self.configured, *self._neighbours()]
        listed = all_answers(names, lambda name: list(self.open(name).pointers()))
        return (each for tables in listed for each in tables)

    def _neighbours(self) -> Mapping[str, CatalogSettings]:
        """Returns the catalogs that nobody configured and that have rows in the database of one that is."""
        from firnline.catalogs.config import unconfigured

        found = unconfigured(self.configured)
        self._unconfigured.update(found)
        return found

    def address_of(self, name: TableName) -> str:
        """Returns what tells catalogs apart, by whatever name they are configured; nothing that is secret shows."""
        return self.settings(name.catalog).address if name.catalog else ""

    def name_of(self, table: Table) -> TableName:
        """Returns the table that is meant: of a text, read here and nowhere else, the one that its catalog has.

        Raises NoSuchTable; UsageError where the text may mean several.
        """
        refuse_no_text(str(table), "a table's name")
        if isinstance(table, TableName):
            return table
        if is_location(table):
            return TableName.at(absolute(table))
        try:
            return self._literally(table)
        except NoSuchTable as missing:
            return self._listed_as(table, missing)

    def chosen(self, named: Sequence[Table] | None) -> Selection:
        """Returns the tables that names, locations and patterns mean: in `lake.sales.*` the star stands for any text,
        in a name that a listing gave for itself. Every table of every catalog if None.
        """
        if named is None:
            listed, unread = self.readable()
            return Selection(listed, {}, unread)
        patterns = [each for each in named if _is_pattern(each)]
        listed, unread = self.readable(
            name for name in self.configured if any(self._may_mean(str(each), name) for each in patterns)
        )
        found: dict[TableName, None] = {}
        missing: dict[str, FirnlineError] = {}
        for each, answer in zip(named, answers(named, lambda each: self._meant(each, listed, unread)), strict=True):
            if isinstance(answer, FirnlineError):
                missing[str(each)] = answer
            else:
                found |= dict.fromkeys(answer)
        return Selection(list(found), missing, unread)

    def _meant(self, table: Table, listed: Sequence[TableName], unread: Iterable[str]) -> list[TableName]:
        """Returns the tables that one name means; of a pattern those that are listed. Raises NoSuchTable for one that
        means none, unless it may mean tables of a catalog that cannot be read.
        """
        if not _is_pattern(table):
            return [self.name_of(table)]
        pattern, alone = str(table), len(self.configured) == 1
        found = [
            each
            for each in listed
            if fnmatchcase(str(each), pattern)
            or (alone and fnmatchcase(written((*each.namespace, each.name)), pattern))
        ]
        if not found and not any(self._may_mean(pattern, name) for name in unread):
            raise NoSuchTable(f"no table is named like {pattern}", hint="`firnline tables` lists what there is")
        return found

    def _may_mean(self, pattern: str, catalog: str) -> bool:
        """Tells whether a pattern may mean tables of a catalog: the text before its first sign excludes others."""
        stem, begin = re.split(r"[*?\[]", pattern, maxsplit=1)[0], f"{written((catalog,))}."
        return len(self.configured) == 1 or stem.startswith(begin) or begin.startswith(stem)

    def _literally(self, text: str) -> TableName:
        """Returns the table that the text names part by part, with its catalog or, where there is one, without."""
        first, *rest = parts_of(text)
        if first in self.configured and len(rest) > 1:
            name = TableName.of_parts(first, rest)
        elif len(self.configured) == 1 and rest:
            (only,) = self.configured
            name = TableName.of_parts(only, (first, *rest))
        else:
            known = ", ".join(self.configured) or "none is configured"
            hint = f"name it CATALOG.NAMESPACE.NAME, or give its location; catalogs: {known}"
            raise NoSuchTable(f"no such table: {text}", hint=hint)
        self.open(name.catalog).locate(name)
        return name

    def _listed_as(self, text: str, missing: NoSuchTable) -> TableName:
        """Returns the one listed table whose name is this text where no part stands in quotes."""
        names = [name for name in self.configured if len(self.configured) == 1 or text.startswith(f"{name}.")]
        listed = self._tables_of(names)
        found = [table for table in listed if text in _plain_texts(table)]
        if not found and os.path.isdir(text):
            raise NoSuchTable(missing.message, hint=f"a folder here has that name; a path has a slash: ./{text}")
        if not found and listed and len(parts_of(text)) == 1:
            from firnline.catalogs.troubles import guess

            raise NoSuchTable(missing.message, guess(TableName(listed[0].catalog, (), text), listed) or missing.flags)
        if not found:
            raise _for_one_table(text) if is_pattern(text) else missing
        if len(found) > 1:
            shown = " or ".join(map(str, found))
            raise UsageError(f"{text} may mean several tables", hint=f"write {shown}")
        return found[0]


def _for_one_table(pattern: str) -> NoSuchTable:
    """Returns the error for a pattern where a single table is asked for."""
    hint = "`firnline tables` lists what there is; in Python `lake.several(…)` takes patterns"
    return NoSuchTable(f"one table is asked for here, and {pattern} is a pattern", hint=hint)


def _is_pattern(table: Table) -> bool:
    return isinstance(table, str) and is_pattern(table)


def _plain_texts(table: TableName) -> tuple[str, str]:
    """Returns a table's name without quotes: with its catalog, and without."""
    inner = ".".join((*table.namespace, table.name))
    return f"{table.catalog}.{inner}", inner


def absolute(location: str) -> str:
    """Returns a location that means the same from every folder, without a slash at its end. Raises UsageError where
    there are bytes in it that are no text: a relative one has those of the folder that it starts from.
    """
    named = "://" in location or location.startswith("file:")
    found = (location if named else os.path.abspath(location)).rstrip("/")
    refuse_no_text(found, "a location")
    return found
