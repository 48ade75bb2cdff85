"""What firnline plans is what Iceberg's Java library does, on random tables that Iceberg itself wrote.

FIRNLINE_JUDGE_WORLDS sets how many tables (24 unless told, 300 in the long lane).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from . import firnline_side, tally
from .jvm import Jvm
from .options import Options, questions
from .places import size_on_disk
from .verdict import Court, Verdict
from .worlds import World, build

FULL = bool(os.environ.get("FIRNLINE_FULL"))
COUNT = int(os.environ.get("FIRNLINE_JUDGE_WORLDS", "300" if FULL else "24"))
GROUPS = 2 if FULL else 1
"""Few worlds share one JVM with the rest of this folder; many are shared by two workers with a JVM each."""

SEEDS = [pytest.param(seed, marks=pytest.mark.xdist_group(f"judge-{seed % GROUPS}")) for seed in range(COUNT)]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that goes at once: 300 worlds would fill the disk."""
    yield tmp_path
    rmtree(tmp_path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_firnline_plans_what_iceberg_does(
    judge: Jvm, seed: int, folder: Path, record_property: Callable[[str, object], None]
) -> None:
    world = build(judge, seed, folder / "t")
    court = Court(judge, world)
    total, differences = Counter({"worlds": 1}), []
    for options in questions(world):
        verdict = court.verdict(options)
        found = differing(world, options, verdict, folder / "victims.csv")
        total.update(tally.counts(verdict, same=not found))
        differences += found
    record_property(tally.PROPERTY, dict(total))
    assert not differences, "\n".join(differences)


def differing(world: World, options: Options, verdict: Verdict, files: Path) -> list[str]:
    """Every point on which firnline and Java differ about one question."""
    answer = firnline_side.plan(world, options, files)
    points: list[tuple[str, object, object]] = [
        ("expired snapshots", answer.expired, verdict.expired),
        ("expired refs", answer.refs, verdict.refs),
        ("victims", frozenset(answer.victims), verdict.victims),
        ("sizes", answer.victims, {path: size_on_disk(path) for path in answer.victims}),
    ]
    return [
        f"seed {world.seed}, {options}: {name}: firnline {ours}, Iceberg or disk {theirs}"
        for name, ours, theirs in points
        if ours != theirs
    ]
