"""The catalogs a user has already set up for PyIceberg: `.pyiceberg.yaml` and `PYICEBERG_CATALOG__…`
variables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from firnline.errors import UnsupportedFormat, UsageError
from firnline.ports.catalogs import Catalog, Commit
from firnline.ports.stores import ReadWrite
from firnline.side_by_side import all_answers

if TYPE_CHECKING:
    from firnline.catalogs.rest.catalog import RestCatalog
    from firnline.catalogs.sql import SqlCatalog

_COMMITTED = "sql (SQLite or PostgreSQL), rest, and tables named by their path"
Opened = TypeVar("Opened", bound=Catalog)
_opened: dict[object, Any] = {}
_lock = Lock()
_TELLING = ("prefix", "glue.id", "glue.region", "glue.endpoint", "client.region")
_A_KEY_A_LINE = "has braces or brackets, which PyIceberg does not take: write each key on a line of its own, indented"
_NOT_IN_STRICT_YAML = {
    "FlowMappingDisallowed": _A_KEY_A_LINE,
    "AnchorTokenDisallowed": "has an anchor, which PyIceberg does not take: write the value out, or put it in quotes",
    "TagTokenDisallowed": "has a tag, which PyIceberg does not take: leave it out, or put the value in quotes",
    "DuplicateKeysDisallowed": "has a key for the second time",
    "InconsistentIndentationDisallowed": "is indented otherwise than the mapping before it",
}
"""What is YAML, and is refused by the library that reads PyIceberg's file: who looks for a slip finds none."""
_TYPE_OF_SCHEME = {"sqlite": "sql", "postgresql": "sql", "http": "rest", "https": "rest", "thrift": "hive"}


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """One catalog of the configuration. Its address and `properties` may hold credentials, so they are never shown.

    `stored` is the name that its rows have, where that is not the name it is configured by. A tier's catalog
    `may_be_new`: it reads as empty until the first table is placed in it.
    """

    name: str
    kind: str
    uri: str = field(repr=False)
    properties: Mapping[str, str] = field(repr=False, default_factory=dict)
    stored: str | None = None
    may_be_new: bool = False

    @property
    def address(self) -> str:
        """What tells this catalog from others: equal for two names of one catalog, and no secret shows in it.

        A SQL catalog's name is in its rows; a server tells its catalogs apart by warehouse and prefix, and one that has
        no address of its own by account and region.
        """
        own = self.stored or self.name if self.kind == "sql" else self.properties.get("warehouse", "")
        parts = (self.kind, self._place, own, *(self.properties.get(each, "") for each in _TELLING))
        return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def _place(self) -> str:
        """The server or database, by whichever user: passwords change, and differ between machines."""
        if self.kind != "sql":
            return self.uri.rstrip("/")
        from firnline.catalogs.connections import database_of

        return repr(database_of(self.uri))


def load_catalogs() -> dict[str, CatalogSettings]:
    """Returns the configured catalogs by name, lower-cased as PyIceberg reads them. Raises UsageError."""
    return {name: _settings(name, properties) for name, properties in written_catalogs().items()}


def written_catalogs() -> dict[str, Any]:
    """Returns what is written of each catalog, in a file or in variables, with its credentials. Raises UsageError."""
    if not _is_configured():
        return {}
    from pyiceberg.utils.config import Config

    try:
        catalogs: Any = Config().config.get("catalog", {})
    except Exception as error:  # what a broken file raises is the YAML library's own affair
        raise UsageError(
            f"PyIceberg's configuration cannot be read: {_where(error)}", hint="see .pyiceberg.yaml"
        ) from None
    if not isinstance(catalogs, dict):
        raise UsageError(
            "`catalog` in PyIceberg's configuration is not a mapping of names",
            "under `catalog:` each name has a line of its own, indented, and under it type, uri and the rest",
        )
    return catalogs


def _is_configured() -> bool:
    """Tells whether PyIceberg would find anything: it and what reads its file take longer to load than a small plan."""
    places = (os.environ.get("PYICEBERG_HOME"), os.path.expanduser("~"), os.getcwd())
    is_set = any(name.upper().startswith("PYICEBERG_") for name in os.environ)
    return is_set or any(os.path.isfile(os.path.join(place, ".pyiceberg.yaml")) for place in places if place)


def _where(error: Exception) -> str:
    """Returns what is wrong and on which line. The library's own words show lines of the file: there are secrets."""
    mark, name = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None), type(error).__name__
    if mark is None:
        return name
    return f"line {mark.line + 1} {_NOT_IN_STRICT_YAML.get(name, 'is not as YAML is written there')}"


def unconfigured(catalogs: Mapping[str, CatalogSettings]) -> dict[str, CatalogSettings]:
    """Returns the catalogs that have rows in the database of a configured one and that nobody configured.

    Their tables live in the same warehouse more often than not, and are reached as the configured one's are. They are
    called `CONFIGURED:STORED`.
    """
    sql = [each for each in catalogs.values() if each.kind == "sql"]
    if not sql:
        return {}
    from firnline.catalogs.connections import database_of

    told = all_answers(sql, lambda each: (database_of(_uri(each)), _sql(each).stored, _sql(each).others()))
    taken = {(database, stored) for database, stored, _ in told}
    found: dict[str, CatalogSettings] = {}
    for each, (database, _, others) in zip(sql, told, strict=True):
        for stored in others:
            if (place := (database, stored)) not in taken:
                taken.add(place)
                name = f"{each.name}:{stored}"
                found[name] = replace(each, name=name, stored=stored)
    return found


def open_catalog(settings: CatalogSettings) -> Catalog:
    """Returns the read side of the catalog, not connected yet.

    Types that firnline has no client for are read through PyIceberg. Raises UsageError where the configuration says
    too little.
    """
    match settings.kind:
        case "sql":
            return _sql(settings)
        case "rest":
            return _rest(settings)
        case _:
            from firnline.catalogs.others import OtherCatalog  # loads all of PyIceberg: only where it is needed

            return OtherCatalog(settings.name, settings.properties)


def open_commits(settings: CatalogSettings, store: ReadWrite) -> Commit:
    """Returns the write side of the same catalog; new metadata goes to the store, or is the server's affair.

    Raises UnsupportedFormat for a type on which no commit is safe.
    """
    match settings.kind:
        case "sql":
            from firnline.catalogs.commits import SqlCommits

            return SqlCommits(_sql(settings), store)
        case "rest":
            from firnline.catalogs.rest.commits import RestCommits

            return RestCommits(_rest(settings))
        case _:
            raise UnsupportedFormat(
                f"nothing is committed to catalog {settings.name} of type {settings.kind or 'unknown'}: firnline has "
                "no compare-and-swap on its metadata location",
                f"plans work; commits work on {_COMMITTED}",
            )


def _sql(settings: CatalogSettings) -> SqlCatalog:
    from firnline.catalogs.sql import SqlCatalog  # SQLAlchemy takes as long to load as a small plan

    return _shared(settings, lambda: SqlCatalog(settings.name, _uri(settings), settings.stored, settings.may_be_new))


def _rest(settings: CatalogSettings) -> RestCatalog:
    from firnline.catalogs.rest.placing import PlacingRestCatalog

    return _shared(settings, lambda: PlacingRestCatalog(settings.name, {**settings.properties, "uri": _uri(settings)}))


def _shared(settings: CatalogSettings, make: Callable[[], Opened]) -> Opened:
    """Returns one catalog for equal settings: its connections, and the token it got, are used again."""
    said = frozenset(settings.properties.items())
    key = (settings.name, settings.kind, settings.uri, said, settings.stored, settings.may_be_new)
    with _lock:
        if key not in _opened:
            _opened[key] = make()
        found: Opened = _opened[key]
    return found


def _uri(settings: CatalogSettings) -> str:
    if not settings.uri:
        variable = f"PYICEBERG_CATALOG__{settings.name.upper()}__URI"
        raise UsageError(f"catalog {settings.name} has no uri", f"set it in .pyiceberg.yaml or {variable}")
    return settings.uri


def _settings(name: str, properties: Any) -> CatalogSettings:
    if not isinstance(properties, dict):
        raise UsageError(
            f"catalog {name} in PyIceberg's configuration is not a mapping",
            f"under `{name}:` type, uri and the rest have lines of their own, indented",
        )
    flat = dict(_flat(properties))
    uri = flat.get("uri", "")
    kind = "other" if "py-catalog-impl" in flat else flat.get("type") or _kind_of(uri)
    return CatalogSettings(name, kind.lower(), uri, flat)


def _flat(properties: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yields properties by their full names: `ssl: {cabundle: X}` is `ssl.cabundle`, as a variable would set it."""
    for name, value in properties.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", str(value)


def _kind_of(uri: str) -> str:
    scheme = uri.partition(":")[0].partition("+")[0]
    return _TYPE_OF_SCHEME.get(scheme, "")
