"""Both engines say the same of tables that take away what they added, and so does the plain reader."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firnline.formats.paimon.table import PaimonFormat
from firnline.local.engine import LocalEngine
from firnline.model.files import Root
from firnline.model.locations import parse_location
from firnline.ops.runs.plan import roots
from firnline.ports.engines import Engine, ServerRoots, Survey, TableWalk, Territory
from firnline.ports.formats import State
from firnline.spark.engine import SparkEngine
from firnline.spark.session import session
from firnline.stores.objects import ObjectStores
from firnline.testing.lakes.engines import alone, of_all, walk_of
from firnline.testing.tables import QuickFiles, SmallTable
from harness.paimon.layout import CHANGELOG
from harness.paimon.worlds import Paimon, PaimonWorld, grow

FULL = bool(os.environ.get("FIRNLINE_FULL"))
SEEDS = range(100, 300) if FULL else range(100, 106)
FORMAT = PaimonFormat(ObjectStores({}))
METADATA = ("/snapshot/", "/tag/", "/schema/", "/changelog/changelog-")


def loaded(world: PaimonWorld) -> State:
    return FORMAT.load("t", str(world.folder))


def answer(engine: Engine, state: State, released: frozenset[str]) -> dict[str, Any]:
    survey: Survey = engine.survey(roots(FORMAT, state, released), FORMAT.expand, Territory(None))
    files = {"victims": survey.victim_batches(), "kept": survey.kept_batches()}
    listed = {
        name: sorted((row["identity"], row["kind"], row["size"] or 0) for batch in batches for row in batch.to_pylist())
        for name, batches in files.items()
    }
    survey.close()
    return {**listed, "totals": (survey.kept, survey.victims, survey.units_opened, survey.unsized)}


def some_expired(state: State, rng: random.Random) -> frozenset[str]:
    heads = {ref.snapshot for ref in state.refs.values()}
    gone = {each.id for each in state.graph if each.id not in heads and rng.random() < 0.6}
    return FORMAT.consequences(state, gone, set(), None).released


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.sampled(1)
def test_what_roots_need_is_what_the_plain_reader_says(both: Paimon, seed: int, quick_folder: Path) -> None:
    world = grow(both, seed, quick_folder)
    state = loaded(world)
    survey = LocalEngine().survey(
        (Root(file, True, owner) for owner, file in FORMAT.roots(state)), FORMAT.expand, Territory(None)
    )
    ours = {parse_location(key).path for batch in survey.kept_batches() for key in batch.column("key").to_pylist()}
    assert survey.units_opened == sum(
        tally.files for kind, tally in survey.kept.by_kind.items() if kind in FORMAT.expand.order
    )
    needs = world.reader().reachable()
    every = {path for each in needs.values() for path in each.files if not any(kind in path for kind in METADATA)}
    assert not every - ours
    if not any(root.kind == CHANGELOG for root in needs) and not world.shape.decoupled:
        assert ours == every  # a changelog that outlives its snapshot keeps somewhat more here


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_says_the_same(both: Paimon, quick_folder: Path) -> None:
    spark = SparkEngine(session())
    for seed in SEEDS if FULL else SEEDS[:1]:
        state = loaded(grow(both, seed, quick_folder / str(seed)))
        released = some_expired(state, random.Random(seed))
        assert answer(spark, state, released) == answer(LocalEngine(), state, released), seed


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("engine_name", ["local", pytest.param("spark", marks=pytest.mark.full)])
def test_tables_of_both_formats_are_walked_in_one_pass(both: Paimon, quick_folder: Path, engine_name: str) -> None:
    """Two Paimon tables, one of them twice, and an Iceberg table; one asks what the other format needs."""
    engine: Engine = LocalEngine() if engine_name == "local" else SparkEngine(session())
    walks: list[TableWalk] = []
    for seed in SEEDS[:2]:
        state = loaded(grow(both, seed, quick_folder / str(seed)))
        both_ways = (some_expired(state, random.Random(seed)), frozenset[str]())
        walks += [TableWalk(list(roots(FORMAT, state, gone)), FORMAT.expand, Territory(None)) for gone in both_ways]
    table = SmallTable(QuickFiles(), f"file://{quick_folder}/iceberg")
    table.append(3)
    table.overwrite(table.live()[:1])
    iceberg = walk_of(table, list(table.changes)[:1], ObjectStores())
    theirs = tuple(Root(root.file, True) for root in iceberg.roots)
    walks += [iceberg, replace(walks[0], elsewhere=[ServerRoots(theirs, iceberg.expand)])]
    assert of_all(engine, walks) == [alone(LocalEngine(), walk) for walk in walks]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_rows_are_never_dealt_out_in_turn(both: Paimon, quick_folder: Path) -> None:
    """Entries come in any order. Dealt out in turn, the rows of a task that is run again would go to other tasks, and
    one that went to a task which is done would be lost: a manifest that nobody opens.
    """
    state = loaded(grow(both, SEEDS[0], quick_folder))
    asked = TableWalk(list(roots(FORMAT, state, frozenset())), FORMAT.expand, Territory(None))
    walked = SparkEngine(session())._walk([asked])
    plan = walked._jdf.queryExecution().toString().lower()
    exchanges = [line for line in plan.splitlines() if "exchange" in line]
    assert exchanges
    assert all("shufflepartitionidpassthrough" in line for line in exchanges)
