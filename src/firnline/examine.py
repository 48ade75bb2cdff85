"""What `firnline doctor` looks at, put together from a lake. A configuration that cannot be read is a finding too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from firnline.app import Lake
from firnline.errors import FirnlineError, UsageError
from firnline.model.names import is_location, parts_of
from firnline.ops.looking.doctor import CatalogFacts, Patient, diagnose
from firnline.ops.looking.findings import Diagnosis, Veil, secrets_in
from firnline.ops.table.context import TableContext
from firnline.policy.parse import Section
from firnline.ports.catalogs import TableName
from firnline.ports.probe import Probe
from firnline.ports.stores import List
from firnline.settings import cache_setting, find_config, read_config


def examine(config: str | None, engine: str, what: str | None) -> Diagnosis:
    """Returns what is configured, reachable and permitted. `what` names one catalog, or a table to try."""
    file = find_config(config)
    try:
        lake = Lake(read_config(config), engine)
    except FirnlineError:
        lake = Lake(Section(), engine)
    only = what if what is not None and what in _names(lake) else None
    patient = Patient(
        config_file=None if file is None else str(file.absolute()),
        engine=engine,
        config=lambda: read_config(config),
        catalogs=lambda: _known(lake),
        tables=lake.tables,
        cache=lambda: lake.memory,
        store=_store,
        probe=lambda facts: _probe(lake, TableName(facts.name, (), "")),
        table=None if what is None or only else _table(lake, what),
        only=only or (_catalog_of(lake, what) if what else None),
    )
    return diagnose(patient, Veil(_secrets(lake)))


def _names(lake: Lake) -> list[str]:
    try:
        return list(lake.catalogs)
    except FirnlineError:
        return []


def _known(lake: Lake) -> dict[str, CatalogFacts]:
    return dict(lake.catalogs)


def _catalog_of(lake: Lake, table: str) -> str | None:
    """Returns the catalog that a table's name begins with: of the others nobody asked."""
    first = None if is_location(table) else parts_of(table)[0]
    return first if first in _names(lake) else None


def _store(facts: CatalogFacts) -> List:
    from firnline.stores.objects import ObjectStores

    return ObjectStores(facts.properties)


def _probe(lake: Lake, name: TableName) -> Probe:
    from firnline.stores.probe import StoreProbe

    settings = lake.settings_of(name) if name.name else lake.catalogs[name.catalog].properties
    return StoreProbe(settings)


def _table(lake: Lake, what: str) -> Callable[[], tuple[TableContext, Probe]]:
    def opened() -> tuple[TableContext, Probe]:
        work = lake.table_context(what)
        return work, _probe(lake, work.source.name)

    return opened


def _secrets(lake: Lake) -> Iterator[str]:
    """Yields everything that must not be shown: of the catalogs, of the cache, and of the environment."""
    try:
        for each in lake.catalogs.values():
            yield from secrets_in(each.properties.items())
    except UsageError:
        pass
    yield from secrets_in([("cache", cache_setting(lake.config)[0])])
    yield from secrets_in(os.environ.items())
