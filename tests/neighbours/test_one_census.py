"""A search of many tables: one listing, one look at every table, one walk; and the answer of each table alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog

from firnline.app.lake_wide import searches as lake_searches
from firnline.formats.iceberg.table import IcebergFormat
from firnline.ops.orphans.together import search_together
from firnline.stores.ranges import ObjectRanges
from tests.neighbours.lakes import RealLake
from tests.neighbours.test_unfinished import requests

SMALL, LARGE = 5, 10


@contextmanager
def looks() -> Iterator[Counter[str]]:
    """Counts the pieces that are listed, the states that are loaded, and all that is asked of stores and catalogs."""
    with requests() as made, pytest.MonkeyPatch.context() as patched:

        def counted(of: type[Any], verb: str, name: str) -> None:
            act = getattr(of, verb)

            def done(*said: Any, **more: Any) -> Any:
                made[name] += 1
                return act(*said, **more)

            patched.setattr(of, verb, done)

        counted(ObjectRanges, "batches", "pieces")
        counted(IcebergFormat, "load", "loads")
        yield made


def grow(lake: RealLake, tables: int) -> None:
    for number in range(len(lake.catalog.list_tables("db")), tables):
        lake.create(f"t{number}")
        lake.append(f"t{number}", number)


def search(lake: RealLake) -> Any:
    answers = lake.firnline().several().orphans(dry_run=True)
    assert [each.problem for each in answers if each.problem] == []
    return answers


def test_twice_the_tables_are_twice_the_requests(lake: RealLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each table by itself would load and open every other one: four times the requests."""
    monkeypatch.setenv("FIRNLINE_CACHE", "off")
    made: dict[int, Counter[str]] = {}
    for tables in (SMALL, LARGE, 2 * LARGE):
        grow(lake, tables)
        with looks() as made[tables]:
            assert len(search(lake)) == tables
    for verb in made[SMALL].keys() - {"pieces"}:
        first, second, third = (made[tables][verb] for tables in (SMALL, LARGE, 2 * LARGE))
        assert third - second == 2 * (second - first), (verb, first, second, third)
    assert {"loads", "get", "sql"} <= made[SMALL].keys()
    assert made[LARGE]["loads"] == 2 * LARGE, "where it is, before the listing; what it needs, after that"
    assert made[2 * LARGE]["pieces"] == 2 * LARGE, "each folder once, and the more of them the fewer pieces of each"


def test_tables_of_two_servers_are_two_passes(lake: RealLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers may call different objects alike. The tables of both count for all."""
    settings = yaml.safe_load((lake.folder / ".pyiceberg.yaml").read_text())["catalog"]["lake"]
    both = {
        "lake": {**settings, "s3.endpoint": "http://127.0.0.1:1"},
        "there": {**settings, "s3.endpoint": "http://127.0.0.1:2", "warehouse": f"file://{lake.folder}/there"},
    }
    (lake.folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": both}))
    there = RealLake(lake.folder, SqlCatalog("there", **both["there"]))
    there.catalog.create_namespace("db")
    for some in (lake, there):
        grow(some, 2)
    passes: list[int] = []

    def counted(sought: Any, *said: Any) -> Any:
        passes.append(len(sought))
        return search_together(sought, *said)

    monkeypatch.setattr(lake_searches, "search_together", counted)
    answers = search(lake)
    there.catalog.close()
    assert passes == [2, 2]
    assert [each.value.plan.tables for each in answers] == [4] * 4
