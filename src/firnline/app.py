"""The composition root: the only module that names concrete adapters. Everything heavy is imported when needed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firnline.errors import NoSuchTable, UsageError
from firnline.model.times import parse_instant
from firnline.ops.files import check_listing_name, write_listing
from firnline.ops.plan import Planned, make_plan
from firnline.ops.save import save_plan
from firnline.ops.settle import policy_in_force
from firnline.ops.sources import LocatedTable, catalog_table
from firnline.ops.why import Answer, why
from firnline.plans.explain import explain
from firnline.plans.plan import Plan
from firnline.plans.request import Request
from firnline.policy.config import Section
from firnline.policy.inherit import Effective
from firnline.ports.catalogs import Catalog, TableName
from firnline.ports.progress import Progress, Silent
from firnline.settings import read_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from firnline.catalogs.config import CatalogSettings
    from firnline.formats.iceberg.table import IcebergFormat
    from firnline.ports.engines import Engine
    from firnline.ports.formats import State
    from firnline.stores.objects import ObjectStores

ENGINES = ("auto", "local", "spark")
_LARGE_SNAPSHOTS = 20_000
_LARGE_FILES = 2_000_000

Moment = str | int


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan to look at: in a notebook as a page, in a program through `plan`, `to_json()` and `files()`."""

    planned: Planned
    plan: Plan

    def to_json(self) -> dict[str, Any]:
        return self.plan.to_json()

    def files(self) -> Iterator[dict[str, Any]]:
        """Yields the files that would go, one by one: path, kind, size."""
        survey = self.planned.survey
        for batch in () if survey is None else survey.victim_batches():
            for row in batch.to_pylist():
                yield {"path": row["key"], "kind": row["kind"], "size": row["size"]}

    def write_files(self, out: str | Path) -> int:
        """Returns the number of files written to `out`, a .parquet or .csv."""
        return write_listing(self.planned.survey, Path(out))

    def __str__(self) -> str:
        return explain(self.plan).to_text()

    def _repr_html_(self) -> str:
        return explain(self.plan).to_html()


@dataclass
class Lake:
    """Every table of the configured catalogs, and any table by its location."""

    config: Section
    engine: str = "auto"
    session: SparkSession | None = None
    progress: Progress = field(default_factory=Silent)

    @cached_property
    def store(self) -> ObjectStores:
        from firnline.stores.objects import ObjectStores

        return ObjectStores()

    @cached_property
    def iceberg(self) -> IcebergFormat:
        from firnline.formats.iceberg.table import IcebergFormat
        from firnline.stores.wrappers.read_only import ReadOnly

        return IcebergFormat(ReadOnly(self.store))

    @cached_property
    def catalogs(self) -> Mapping[str, CatalogSettings]:
        """The configured catalogs, none of them opened: one that cannot be read must not hide the others."""
        from firnline.catalogs.config import load_catalogs

        return load_catalogs()

    def catalog(self, name: str) -> Catalog:
        from firnline.catalogs.config import open_catalog

        return open_catalog(self.catalogs[name])

    def tables(self, catalog: str | None = None) -> list[TableName]:
        """Returns every table of every configured catalog, or of one."""
        if catalog is not None and catalog not in self.catalogs:
            raise UsageError(f"no catalog {catalog!r}", hint=f"configured are: {', '.join(self.catalogs) or 'none'}")
        names = self.catalogs if catalog is None else [catalog]
        return [table for name in names for table in self.catalog(name).tables()]

    def plan(
        self,
        table: str,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        now: Moment | None = None,
        keep: Mapping[str, str] | None = None,
        include_outside: bool | None = None,
        save: bool = False,
        files: str | Path | None = None,
    ) -> PlanView:
        """Returns what a run would do. Changes nothing; `save` writes the plan into a new run record."""
        if files is not None:
            check_listing_name(Path(files))
        request = request_of(older_than, retain_last, now, keep, include_outside)
        source = self.source(table)
        planned = make_plan(source, self.config, request, self._choose, now_ms())
        plan = planned.plan
        if save:
            records = policy_in_force(planned.state, source.name, self.config, request).records.value
            plan = save_plan(planned, source.format, self.store, records, now_ms())
        view = PlanView(planned, plan)
        if files is not None:
            view.write_files(files)
        return view

    def why(self, table: str, what: str, **options: Any) -> Answer:
        """Returns what keeps a snapshot, a ref or a file; or why nothing does."""
        return why(self.source(table), self.config, request_of(**options), what, now_ms(), self.progress)

    def policy(self, table: str, keep: Mapping[str, str] | None = None) -> tuple[State, Effective]:
        """Returns the policy in force on a table, every value with its source."""
        source = self.source(table)
        state = source.load()
        return state, policy_in_force(state, source.name, self.config, Request(keep=keep or {}))

    def source(self, table: str) -> LocatedTable:
        """Returns the table of this name or location. Raises NoSuchTable."""
        if "/" in table:
            return self._at_location(table)
        catalog, name = self._named(table)
        return catalog_table(catalog, name, self.iceberg)

    def _at_location(self, location: str) -> LocatedTable:
        from firnline.catalogs.paths import locate_path_table

        name = TableName("", "", location.rstrip("/"))
        return LocatedTable(name, self.iceberg, lambda: locate_path_table(location, self.store))

    def _named(self, table: str) -> tuple[Catalog, TableName]:
        first, *rest = table.split(".")
        if first in self.catalogs and len(rest) > 1:
            return self.catalog(first), TableName(first, ".".join(rest[:-1]), rest[-1])
        if len(self.catalogs) == 1 and rest:
            (name,) = self.catalogs
            return self.catalog(name), TableName(name, ".".join([first, *rest[:-1]]), rest[-1])
        known = ", ".join(self.catalogs) or "none is configured"
        raise NoSuchTable(
            f"no such table: {table}", hint=f"name it CATALOG.NAMESPACE.NAME, or give its location; catalogs: {known}"
        )

    def _choose(self, state: State) -> Engine:
        """Returns Spark for large work or where it was asked for; a small table must not wait for a session."""
        if self.engine == "spark" or (self.engine == "auto" and is_large(state)):
            from firnline.spark.engine import SparkEngine
            from firnline.spark.session import session

            return SparkEngine(self.session or session(), self.progress)
        from firnline.local.engine import LocalEngine

        return LocalEngine(progress=self.progress)


def is_large(state: State) -> bool:
    """Tells whether a walk is worth a Spark session, by what the metadata says without opening anything."""
    snapshots = state.document.get("snapshots") or ()
    totals = (s.get("summary", {}).get("total-data-files", "0") for s in snapshots if isinstance(s, dict))
    files = max((int(text) for text in totals if str(text).isdigit()), default=0)
    return len(state.graph) > _LARGE_SNAPSHOTS or files > _LARGE_FILES


def open_lake(
    config: str | None = None,
    *,
    engine: str = "auto",
    session: SparkSession | None = None,
    progress: Progress | None = None,
) -> Lake:
    """Returns the lake that firnline.yaml and PyIceberg's configuration describe."""
    if engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}", hint=f"one of: {', '.join(ENGINES)}")
    return Lake(read_config(config), engine, session, progress or Silent())


def request_of(
    older_than: Moment | None = None,
    retain_last: int | None = None,
    now: Moment | None = None,
    keep: Mapping[str, str] | None = None,
    include_outside: bool | None = None,
) -> Request:
    return Request(keep or {}, _instant(older_than), retain_last, _instant(now), include_outside)


def _instant(moment: Moment | None) -> int | None:
    return moment if moment is None or isinstance(moment, int) else parse_instant(moment)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
