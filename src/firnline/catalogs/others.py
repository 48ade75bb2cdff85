"""Catalogs that firnline has no client for (Glue, Hive, DynamoDB, BigQuery, your own): read through PyIceberg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyiceberg.catalog import Catalog as TheirCatalog
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

from firnline.catalogs.troubles import no_such_table
from firnline.errors import FirnlineError, StoreError, UnreadableMetadata, UsageError
from firnline.foreign import Veil, secrets_in
from firnline.ports.catalogs import TableName
from firnline.ports.formats import UndoWindow
from firnline.side_by_side import AskedOnce


class OtherCatalog:
    """The read side of any catalog that PyIceberg can load. Nothing is ever written through it."""

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        self._name = name
        self._properties = properties

    def __reduce__(self) -> tuple[type[OtherCatalog], tuple[str, Mapping[str, str]]]:
        return OtherCatalog, (self._name, dict(self._properties))

    def __repr__(self) -> str:
        return f"OtherCatalog({self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def format(self) -> str:
        return "iceberg"

    @property
    def undo(self) -> UndoWindow:
        """None: nothing is committed there, so nothing can be taken back."""
        return UndoWindow.NONE

    def tables(self) -> Iterator[TableName]:
        with self._explained("listing tables"):
            found = [each for space in self._namespaces() for each in self._theirs.list_tables(space)]
        names = (TableName.of_parts(self._name, each) for each in found)
        return iter(sorted(names, key=lambda table: (table.namespace, table.name)))

    def pointers(self) -> Iterator[tuple[TableName, str | None]]:
        return ((table, None) for table in self.tables())

    def locate(self, table: TableName) -> str:
        with self._explained(f"reading {table}"):
            try:
                found = self._theirs.load_table((*table.namespace, table.name)).metadata_location
            except (NoSuchTableError, NoSuchNamespaceError):
                raise no_such_table(table, self.tables()) from None
        if not found:
            raise UnreadableMetadata(
                f"catalog {self._name} does not say where the metadata of {table} lies",
                "it may be no Iceberg table; `firnline plan LOCATION` takes the table's folder",
            )
        return str(found)

    def vended(self, table: TableName) -> Mapping[str, str]:
        return {}

    @AskedOnce
    def _theirs(self) -> TheirCatalog:
        try:
            return load_catalog(self._name, **self._properties)
        except Exception as error:  # what a missing driver or a wrong setting raises is the catalog's own affair
            raise UsageError(
                f"PyIceberg cannot load catalog {self._name}: {self._hidden(error)}",
                "check its type, its settings, and that PyIceberg's extra for it is installed",
            ) from None

    def _namespaces(self) -> Iterator[tuple[str, ...]]:
        waiting: list[tuple[str, ...]] = [()]
        seen: set[tuple[str, ...]] = set()
        while waiting:
            for each in self._below(waiting.pop()):
                if each not in seen:
                    seen.add(each)
                    waiting.append(each)
                    yield each

    def _below(self, parent: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Returns the namespaces in one; a catalog with a single level may say so by failing.

        Any other failure must not pass for an empty namespace: the tables in it would count as dropped.
        """
        if not parent:
            return [tuple(each) for each in self._theirs.list_namespaces()]
        try:
            return [tuple(each) for each in self._theirs.list_namespaces(parent) if len(each) > len(parent)]
        except (NoSuchNamespaceError, NotImplementedError):
            return []

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except FirnlineError:
            raise
        except Exception as error:  # PyIceberg's catalogs raise what their client libraries raise
            raise StoreError(
                f"catalog {self._name} failed at {what}: {self._hidden(error)}", "PyIceberg's own settings apply"
            ) from None

    def _hidden(self, error: Any) -> str:
        """Returns the reason without any secret of the settings."""
        text = Veil(secrets_in(self._properties.items())).over(f"{type(error).__name__}: {error}")
        return text[:600]
