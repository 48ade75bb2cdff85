"""A REST catalog: tables found, and the store settings that the server hands out for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from firnline.catalogs.rest.http import Http, Reply, refusal
from firnline.catalogs.rest.settings import RestSettings
from firnline.catalogs.troubles import no_such_table
from firnline.errors import UnreadableMetadata
from firnline.model.names import written
from firnline.ports.catalogs import TableName
from firnline.ports.formats import UndoWindow
from firnline.side_by_side import AskedOnce

Levels = tuple[str, ...]


class _NoSuchNamespace(Exception):
    """The server's word about a namespace that it may just have listed."""


class RestCatalog:
    """One catalog behind the REST protocol. A pickled copy signs in by itself."""

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        self._given = RestSettings(name, properties)

    def __reduce__(self) -> tuple[type[RestCatalog], tuple[str, Mapping[str, str]]]:
        return type(self), (self._given.name, dict(self._given.properties))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._given.name!r}, {self._given.shown_uri!r})"

    @property
    def name(self) -> str:
        return self._given.name

    @property
    def format(self) -> str:
        return "iceberg"

    @property
    def undo(self) -> UndoWindow:
        """Before the commit: a server refuses snapshots whose sequence numbers have passed."""
        return UndoWindow.BEFORE_COMMIT

    @AskedOnce
    def settings(self) -> RestSettings:
        """What is configured, merged with what the server says at the first request. A page to sign in says nothing:
        without the prefix that the server wants, the tables would be those of another warehouse.
        """
        http = Http(self._given)
        warehouse = self._given.properties.get("warehouse")
        reply = http.read("/v1/config", {"warehouse": warehouse} if warehouse else None)
        http.close()
        if not reply.is_good:
            raise refusal(self._given, reply, "a client's configuration", signed_in=False)
        if not {"defaults", "overrides"} & reply.body.keys():
            raise _something_else(self._given, "configuration of a client")
        return self._given.merged(_texts(reply.body.get("defaults")), _texts(reply.body.get("overrides")))

    @AskedOnce
    def http(self) -> Http:
        return Http(self.settings)

    def tables(self) -> Iterator[TableName]:
        found = {TableName(self.name, space, name) for space in self._namespaces() for name in self._in(space)}
        return iter(sorted(found, key=lambda table: (table.namespace, table.name)))

    def pointers(self) -> Iterator[tuple[TableName, str | None]]:
        return ((table, None) for table in self.tables())

    def locate(self, table: TableName) -> str:
        return self._location_in(self._load(table), table)

    def _location_in(self, said: Mapping[str, Any], table: TableName) -> str:
        location = said.get("metadata-location")
        if not isinstance(location, str) or not location:
            raise UnreadableMetadata(
                f"catalog {self.name} does not say where the metadata of {table} lies",
                "such a table exists only inside its server, which alone can expire it",
            )
        return location

    def vended(self, table: TableName) -> Mapping[str, str]:
        """Returns the server's store settings: for all tables, for this one, and then the credential whose prefix
        matches most of its location.
        """
        said = self._load(table)
        location = str(said.get("metadata-location") or "")
        offered = said.get("storage-credentials")
        told = [each for each in offered if isinstance(each, dict)] if isinstance(offered, list) else []
        fitting = [each for each in told if location.startswith(str(each.get("prefix")))]
        best = max(fitting, key=lambda each: len(str(each.get("prefix"))), default={})
        return {**self._told(), **_texts(said.get("config")), **_texts(best.get("config"))}

    def _told(self) -> dict[str, str]:
        """Returns what the server's configuration adds to the configured properties, or puts in their place."""
        own = self._given.properties
        return {name: value for name, value in self.settings.properties.items() if own.get(name) != value}

    def address(self, table: TableName) -> str:
        """Returns the path of a table's resource."""
        return f"{self._space(table.namespace)}/tables/{quote(table.name, safe='')}"

    def missing(self, table: TableName) -> Exception:
        """Returns the error for a table that the server does not know, with near names."""
        return no_such_table(table, self.tables())

    def refused(self, reply: Reply, what: str) -> Exception:
        return refusal(self.settings, reply, what, self.http.signed_in)

    def _load(self, table: TableName) -> Mapping[str, Any]:
        reply = self.http.read(self.address(table), {"snapshots": "all"})
        if reply.status == 404:
            raise self.missing(table)
        if not reply.is_good:
            raise self.refused(reply, f"reading {table}")
        return reply.body

    def _namespaces(self) -> Iterator[Levels]:
        """Yields every namespace, parents before what is in them."""
        waiting: list[Levels] = [()]
        seen: set[Levels] = set()
        while waiting:
            for levels in self._below(waiting.pop()):
                if levels not in seen:
                    seen.add(levels)
                    waiting.append(levels)
                    yield levels

    def _below(self, parent: Levels) -> list[Levels]:
        """Returns the namespaces in one; none where it was dropped, or where the server knows a single level only."""
        within = {"parent": self.settings.separator.join(parent)} if parent else {}
        try:
            found = [tuple(each) for each in self._paged(f"{self._root}/namespaces", "namespaces", _are_levels, within)]
        except _NoSuchNamespace:
            return []
        return [levels for levels in found if len(levels) > len(parent)]  # some servers answer with the parent itself

    def _in(self, space: Levels) -> list[str]:
        """Returns the tables of a namespace; none where it was dropped since it was listed.

        Raises UnreadableMetadata where it still is listed: its tables would count as dropped.
        """
        try:
            listed = self._paged(f"{self._space(space)}/tables", "identifiers", _is_identifier, {})
            return [each["name"] for each in listed]
        except _NoSuchNamespace:
            if space not in self._below(space[:-1]):
                return []
        raise UnreadableMetadata(
            f"catalog {self.name} lists the namespace {written(space)} and says that there is no such namespace",
            "what its tables need is not known; see the server's log",
        )

    def _paged(self, path: str, what: str, is_entry: Callable[[Any], bool], params: Mapping[str, str]) -> Iterator[Any]:
        """Yields the entries of every page. Raises _NoSuchNamespace where the server says so."""
        size = {"pageSize": self.settings.page_size} if self.settings.page_size else {}
        token: str | None = ""
        seen = set[str]()
        while token is not None:
            seen.add(token)
            reply = self.http.read(path, {**params, **size, "pageToken": token} if token or size else params)
            if reply.status == 404 and reply.error_type == "NoSuchNamespaceException":
                raise _NoSuchNamespace
            if not reply.is_good:
                raise self.refused(reply, f"listing {what}")
            yield from self._entries(reply, what, is_entry)
            following = reply.body.get("next-page-token") or None
            token = None if following is None else str(following)
            if token in seen:
                raise UnreadableMetadata(
                    f"catalog {self.name} answers a page of {what} with the same next page as before",
                    "see the server's log",
                )

    def _entries(self, reply: Reply, what: str, is_entry: Callable[[Any], bool]) -> list[Any]:
        """Returns what a page lists. Raises UnreadableMetadata for an answer that is no listing.

        1. Before the catalog stands a gateway, and its session ends: it answers with 200, and a page to sign in.
        2. Read as a listing the page is empty. The tables of the catalog would count as dropped, and what they share
           with others as needed by nobody.
        """
        entries = reply.body.get(what)
        if isinstance(entries, list) and all(map(is_entry, entries)):
            return entries
        raise _something_else(self.settings, f"listing of {what}")

    @property
    def _root(self) -> str:
        return f"/v1{self.settings.prefix}"

    def _space(self, levels: Levels) -> str:
        return f"{self._root}/namespaces/{quote(self.settings.separator.join(levels), safe='')}"


def _something_else(settings: RestSettings, expected: str) -> UnreadableMetadata:
    return UnreadableMetadata(
        f"{settings.who} answers with what is no {expected}",
        "does something else answer at its uri, such as a page to sign in? what its tables need is not known",
    )


def _are_levels(entry: Any) -> bool:
    return isinstance(entry, list) and bool(entry) and all(isinstance(each, str) for each in entry)


def _is_identifier(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str)


def _texts(said: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in said.items()} if isinstance(said, dict) else {}
