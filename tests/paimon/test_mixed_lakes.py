"""Tables of two formats planned by one command: what it says of each is what it says of that table alone, with clones
that share files, whichever of them is damaged, on threads and on executors.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firnline.app.places import now_ms
from firnline.testing.damage import SPOILED
from firnline.testing.dated import copy_dated
from tests.neighbours.lakes import RealLake, real_lake
from tests.neighbours.test_random_lakes import told

PAIMON = 3
DAMAGED = ["nothing", "an Iceberg table", "a Paimon table", "one of each"]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    with real_lake(tmp_path, monkeypatch) as lake:
        yield lake


def written(lake: RealLake, made: Path) -> list[str]:
    """Returns the names of the tables: a table and its clone, one beside them, and some of Paimon's in a warehouse."""
    for name in ("t0", "t1"):
        lake.create(name)
        for number in range(4):
            lake.append(name, number)
    lake.clone("t0", "t2")
    lake.overwrite("t0", 9)
    lake.append("t2", 7)
    places = [lake.folder / "paimon" / f"db{number % 2}.db" / f"p{number}" for number in range(PAIMON)]
    for place in places:
        shutil.copytree(made / "t", place, copy_function=copy_dated)
    return [*(f"lake.db.t{number}" for number in range(3)), *map(str, places)]


def spoil(lake: RealLake, chosen: random.Random, damaged: str) -> None:
    """Damages a unit that some snapshot of a table names; the clone may need it as well."""
    how = SPOILED[chosen.choice(sorted(SPOILED))]
    if damaged in ("an Iceberg table", "one of each"):
        how(chosen.choice([each.manifest_list for each in lake.table("t0").snapshots()]).removeprefix("file://"))
    if damaged in ("a Paimon table", "one of each"):
        how(str(chosen.choice(sorted((lake.folder / "paimon" / "db1.db" / "p1" / "manifest").glob("manifest-*")))))


def asked() -> dict[str, Any]:
    return {"older_than": now_ms(), "now": now_ms(), "retain_last": 1, "blast_radius": 1.0}


def assert_alike(lake: RealLake, made: Path, damaged: str, engine: str) -> None:
    names, chosen, request = written(lake, made), random.Random(damaged), asked()
    spoil(lake, chosen, damaged)
    chosen.shuffle(names)
    together = {each.table: each.problem or each.value for each in lake.firnline(engine).several(names).plan(**request)}
    assert set(together) == set(names)
    alone = {each.table: each.problem or each.value for name in names for each in one_by_one(lake, name, request)}
    said = {name: told(each) for name, each in together.items()}
    assert said == {name: told(each) for name, each in alone.items()}
    assert ("unreadable" in said.values()) == (damaged != "nothing")
    freeing = sum(isinstance(each, dict) and bool(each["victims"]["by_kind"]) for each in said.values())
    # An unreadable table of the catalog may need any file of its neighbours: no plan beside it takes one.
    assert freeing == 0 if "Iceberg" in damaged or damaged == "one of each" else freeing >= 2


def one_by_one(lake: RealLake, name: str, request: dict[str, Any]) -> Any:
    return lake.firnline().several([name]).plan(**request)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_mixed_lake_is_planned_as_its_tables_are(lake: RealLake, made: Path, damaged: str) -> None:
    assert_alike(lake, made, damaged, "local")


@pytest.mark.sampled(1)
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_mixed_lake_is_planned_on_spark_as_its_tables_are_on_threads(
    lake: RealLake, made: Path, damaged: str
) -> None:
    assert_alike(lake, made, damaged, "spark")
