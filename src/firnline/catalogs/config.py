"""The catalogs a user has already set up for PyIceberg: `.pyiceberg.yaml` and `PYICEBERG_CATALOG__…`
variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from firnline.catalogs.commits import SqlCommits
from firnline.catalogs.sql import SqlCatalog
from firnline.errors import UnsupportedFormat, UsageError
from firnline.ports.catalogs import Catalog, Commit
from firnline.ports.stores import ReadWrite

_SUPPORTED = "sql (SQLite or PostgreSQL)"
_TYPE_OF_SCHEME = {"sqlite": "sql", "postgresql": "sql", "http": "rest", "https": "rest", "thrift": "hive"}


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """One catalog of the configuration. `properties` may hold credentials, so they are never shown."""

    name: str
    kind: str
    uri: str
    properties: Mapping[str, str] = field(repr=False, default_factory=dict)


def load_catalogs() -> dict[str, CatalogSettings]:
    """Returns the configured catalogs by name, lower-cased as PyIceberg reads them. Raises UsageError."""
    from pyiceberg.utils.config import Config

    try:
        catalogs: Any = Config().config.get("catalog", {})
    except Exception as error:  # what a broken file raises is the YAML library's own affair
        raise UsageError(f"PyIceberg's configuration cannot be read: {error}") from error
    if not isinstance(catalogs, dict):
        raise UsageError("`catalog` in PyIceberg's configuration is not a mapping of names")
    return {name: _settings(name, properties) for name, properties in catalogs.items()}


def open_catalog(settings: CatalogSettings) -> Catalog:
    """Returns the read side of the catalog, not connected yet.

    Raises UnsupportedFormat for a type that is not supported, UsageError where the configuration says too little.
    """
    return _sql(settings)


def open_commits(settings: CatalogSettings, store: ReadWrite) -> Commit:
    """Returns the write side of the same catalog; new metadata goes to the store."""
    return SqlCommits(_sql(settings), store)


def _sql(settings: CatalogSettings) -> SqlCatalog:
    if settings.kind != "sql":
        raise UnsupportedFormat(
            f"catalog {settings.name} is of type {settings.kind or 'unknown'}", f"supported is {_SUPPORTED}"
        )
    if not settings.uri:
        variable = f"PYICEBERG_CATALOG__{settings.name.upper()}__URI"
        raise UsageError(f"catalog {settings.name} has no uri", f"set it in .pyiceberg.yaml or {variable}")
    return SqlCatalog(settings.name, settings.uri)


def _settings(name: str, properties: Any) -> CatalogSettings:
    if not isinstance(properties, dict):
        raise UsageError(f"catalog {name} in PyIceberg's configuration is not a mapping")
    uri = str(properties.get("uri", ""))
    kind = properties.get("type") or properties.get("py-catalog-impl") or _kind_of(uri)
    return CatalogSettings(name, str(kind).lower(), uri, {key: str(value) for key, value in properties.items()})


def _kind_of(uri: str) -> str:
    scheme = uri.partition(":")[0].partition("+")[0]
    return _TYPE_OF_SCHEME.get(scheme, "")
