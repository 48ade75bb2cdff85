"""What `firnline doctor` looks at. A configuration that cannot be read is a finding too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from firnline.app.places import Places
from firnline.errors import FirnlineError, UsageError
from firnline.extras import has
from firnline.foreign import Veil, secrets_in
from firnline.model.names import is_location, parts_of
from firnline.ops.looking.doctor import CatalogFacts, Patient, diagnose
from firnline.ops.looking.findings import Diagnosis
from firnline.ops.table.context import TableContext
from firnline.ports.probe import Probe
from firnline.ports.stores import List
from firnline.settings import cache_setting, find_config, read_config, webhook_secrets


def examine(places: Places, config: str | None, what: str | None) -> Diagnosis:
    """Returns what is configured, reachable and permitted. `what` names one catalog, or a table to try."""
    file = find_config(config)
    only = what if what is not None and what in _names(places) else None
    patient = Patient(
        config_file=None if file is None else str(file.absolute()),
        engine=places.engines.named,
        config=lambda: read_config(config),
        catalogs=lambda: dict(places.catalogs.configured),
        tables=places.tables,
        cache=lambda: places.memory,
        store=_store,
        probe=_probe,
        table=None if what is None or only else partial(_table, places, what),
        only=only or (_catalog_of(places, what) if what else None),
        spark=partial(_spark_connect, places.engines.named),
    )
    return diagnose(patient, Veil(_secrets(places)))


def _names(places: Places) -> list[str]:
    try:
        return list(places.catalogs.configured)
    except FirnlineError:
        return []


def _catalog_of(places: Places, table: str) -> str | None:
    """Returns the catalog that a table's name begins with: of the others nobody asked."""
    first = None if is_location(table) else parts_of(table)[0]
    return first if first in _names(places) else None


def _spark_connect(engine: str) -> str | None:
    """Returns the server that SPARK_REMOTE names, without what may be secret of its address; None where it names none,
    or nothing is to be walked on Spark. Raises UsageError where it does not answer.
    """
    remote = os.environ.get("SPARK_REMOTE", "")
    if engine == "local" or not remote.startswith("sc://") or not has("spark"):
        return None
    from firnline.spark.session import refuse_unreachable

    refuse_unreachable(remote)
    return f"Spark Connect at {remote.partition(';')[0].removeprefix('sc://').rstrip('/')}"


def _store(facts: CatalogFacts) -> List:
    from firnline.app.stores import refuse_silent_store
    from firnline.stores.objects import ObjectStores

    refuse_silent_store(facts.properties)
    return ObjectStores(facts.properties)


def _probe(facts: CatalogFacts) -> Probe:
    from firnline.stores.probe import StoreProbe

    return StoreProbe(facts.properties)


def _table(places: Places, what: str) -> tuple[TableContext, Probe]:
    work = places.table_context(what)
    return work, places.stores.probe(work.source.name)


def _secrets(places: Places) -> Iterator[str]:
    """Yields everything that must not be shown: of the catalogs, of the cache, of the webhook, and of the
    environment.
    """
    try:
        for each in places.catalogs.configured.values():
            yield from secrets_in(each.properties.items())
    except UsageError:
        pass
    yield from secrets_in([("cache", cache_setting(places.config)[0])])
    yield from webhook_secrets(places.config)
    yield from secrets_in(os.environ.items())
