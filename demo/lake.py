"""A lake worth looking at: a catalog in SQLite, three tables of real Parquet and weeks of history in each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ValidationException

from demo.artemis import DAY_MS, HOUR_MS, Scene, config, registry, telemetry
from demo.backdate import SetClock, pyiceberg_clock, shared_entries
from firnline.testing.dated import date

_TRIES = 2

POLICY = """\
keep:
  within: 30d
catalogs:
  lake:
    namespaces:
      artemis:
        tables:
          registry: {keep: {within: 30d, monthly: 12, tags: ["audit-*"]}}
          telemetry: {keep: {within: 7d, daily: 14}}
          config: {keep: {within: 365d}}
"""


def local_catalog(folder: Path) -> dict[str, str]:
    """Returns the settings of a catalog in the folder: SQLite and local files."""
    place = folder.resolve()
    return {"type": "sql", "uri": f"sqlite:///{place}/catalog.db", "warehouse": f"file://{place}/warehouse"}


def build_on(settings: Mapping[str, str], folder: Path, now_ms: int, days: int = 60) -> None:
    """Makes the lake in an empty catalog elsewhere; the folder gets only firnline.yaml and .pyiceberg.yaml."""
    _configure(folder, settings)
    with _opened(settings) as catalog:
        live_through(catalog, None, now_ms, days)


def build(folder: Path, now_ms: int, days: int = 60) -> None:
    """Fills folder with catalog.db, warehouse/, firnline.yaml and .pyiceberg.yaml; all commits before now_ms.

    The folder must hold no lake yet: commits of two lakes in one catalog would not be in order of time.
    """
    for _ in range(_TRIES):
        with suppress(ValidationException):
            _build(folder.resolve(), now_ms, days)
            return
        # Seen once in many lakes on a busy machine: PyIceberg does not find a file that it has just listed itself.
        shutil.rmtree(folder / "warehouse", ignore_errors=True)
        (folder / "catalog.db").unlink(missing_ok=True)
    _build(folder.resolve(), now_ms, days)


def _build(folder: Path, now_ms: int, days: int) -> None:
    settings = local_catalog(folder)
    _configure(folder, settings)
    with _opened(settings) as catalog:
        live_through(catalog, folder / "warehouse", now_ms, days)


def _configure(folder: Path, settings: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "firnline.yaml").write_text(POLICY)
    (folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"lake": dict(settings)}}, sort_keys=False))


@contextmanager
def _opened(settings: Mapping[str, str]) -> Iterator[SqlCatalog]:
    catalog = SqlCatalog("lake", **settings)
    try:
        yield catalog
    finally:
        catalog.close()


def live_through(catalog: SqlCatalog, warehouse: Path | None, now_ms: int, days: int) -> None:
    """Lets the days pass one by one; each table does its work of the day at an hour of its own.

    Files of a local `warehouse` are dated to fit; a server dates its objects itself.
    """
    dated: set[str] = set()
    with shared_entries(), pyiceberg_clock(SetClock(now_ms - days * DAY_MS)) as clock:
        catalog.create_namespace("artemis")
        scene = Scene(catalog, clock, days)
        lives = (telemetry(scene), registry(scene), config(scene))
        for day in range(days):
            dawn = now_ms - (days - day) * DAY_MS
            for hour, life in enumerate(lives, start=1):
                clock.now_ms = dawn + hour * HOUR_MS
                next(life)
            if warehouse is not None:
                date_files(warehouse, dated, dawn + 4 * HOUR_MS)


def date_files(warehouse: Path, dated: set[str], written_ms: int) -> None:
    """Gives files that appeared since the last call an age that fits their commit."""
    for folder, _, names in os.walk(warehouse):
        for path in (os.path.join(folder, name) for name in names):
            if path not in dated:
                date(path, written_ms)
                dated.add(path)
