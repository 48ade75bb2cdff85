"""Which catalogs there are, which tables they list, and which of them a text names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError, NoSuchTable, UsageError
from firnline.model.names import is_location, is_pattern, parts_of, written
from firnline.policy.parse import Section
from firnline.ports.catalogs import Catalog, TableName

if TYPE_CHECKING:
    from firnline.catalogs.config import CatalogSettings

Table = str | TableName
"""A table as a caller names it: by a text, or by the value that a listing gave."""


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
        names = self.configured if catalog is None else [catalog]
        return [table for name in names for table in self.open(name).tables()]

    def readable(self, pattern: str = "*") -> tuple[list[TableName], dict[str, FirnlineError]]:
        """Returns the tables of every configured catalog that can be read, and what is wrong with each other one. One
        whose tables no pattern can mean is not asked.
        """
        found: list[TableName] = []
        unread: dict[str, FirnlineError] = {}
        for name in self.configured:
            if not self._may_mean(pattern, name):
                continue
            try:
                found += self.tables(name)
            except FirnlineError as problem:
                unread[name] = problem
        return found, unread

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
        yield from (table for name in self._neighbours() for table in self.open(name).tables())

    def pointers(self) -> Iterator[tuple[TableName, str | None]]:
        """Yields every table whose needs count, with its metadata's location where a listing tells."""
        return (each for name in (*self.configured, *self._neighbours()) for each in self.open(name).pointers())

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
        if isinstance(table, TableName):
            return table
        if is_location(table):
            return TableName.at(absolute(table))
        try:
            return self._literally(table)
        except NoSuchTable as missing:
            return self._listed_as(table, missing)

    def chosen(self, tables: Sequence[Table]) -> tuple[list[TableName], dict[str, FirnlineError]]:
        """Returns the tables that names, locations and patterns mean, each once, and what is wrong with a catalog of
        which a pattern may mean tables: in `lake.sales.*` the star stands for any text, in a name that a listing gave
        for itself. Raises NoSuchTable for a text that means none.
        """
        found: dict[TableName, None] = {}
        unread: dict[str, FirnlineError] = {}
        for each in tables:
            if isinstance(each, str) and is_pattern(each):
                matching, silent = self._matching(each)
                unread |= silent
            else:
                matching = [self.name_of(each)]
            found |= dict.fromkeys(matching)
        return list(found), unread

    def _matching(self, pattern: str) -> tuple[list[TableName], dict[str, FirnlineError]]:
        listed, unread = self.readable(pattern)
        alone = len(self.configured) == 1
        found = [
            table
            for table in listed
            if fnmatchcase(str(table), pattern)
            or (alone and fnmatchcase(written((*table.namespace, table.name)), pattern))
        ]
        if not found and not unread:
            raise NoSuchTable(f"no table is named like {pattern}", hint="`firnline tables` lists what there is")
        return found, unread

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
        listed = [table for name in names for table in self.open(name).tables()]
        found = [table for table in listed if text in _plain_texts(table)]
        if not found and os.path.isdir(text):
            raise NoSuchTable(missing.message, hint=f"a folder here has that name; a path has a slash: ./{text}")
        if not found and listed and len(parts_of(text)) == 1:
            from firnline.catalogs.troubles import guess

            raise NoSuchTable(missing.message, guess(TableName(listed[0].catalog, (), text), listed) or missing.hint)
        if not found:
            raise missing
        if len(found) > 1:
            shown = " or ".join(map(str, found))
            raise UsageError(f"{text} may mean several tables", hint=f"write {shown}")
        return found[0]


def _plain_texts(table: TableName) -> tuple[str, str]:
    """Returns a table's name without quotes: with its catalog, and without."""
    inner = ".".join((*table.namespace, table.name))
    return f"{table.catalog}.{inner}", inner


def absolute(location: str) -> str:
    """Returns a location that means the same from every folder, without a slash at its end."""
    named = "://" in location or location.startswith("file:")
    return (location if named else os.path.abspath(location)).rstrip("/")
