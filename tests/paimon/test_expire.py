"""Runs on tables that real Paimon wrote: everything that is left reads as before, and nothing else went.

FIRNLINE_PAIMON_RUNS sets how many tables (6 unless told, 300 in the long lane).
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator

import pytest

from firnline.app import PlanView
from firnline.testing.paimon.worlds import Paimon, World, grow
from firnline.testing.paimon_process import PaimonProcess
from firnline.testing.processes import Clock

from .worlds import Seen, aside, asked, compare, table

COUNT = int(os.environ.get("FIRNLINE_PAIMON_RUNS", "300" if os.environ.get("FIRNLINE_FULL") else "6"))
FIRST = int(os.environ.get("FIRNLINE_PAIMON_FIRST", "20"))


@pytest.fixture(scope="module", params=range(FIRST, FIRST + COUNT))
def world(both: Paimon, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = tmp_path_factory.mktemp("world")
    yield grow(both, request.param, root)
    shutil.rmtree(root)


def test_a_run_frees_exactly_what_nothing_needs_any_more(both: Paimon, world: World) -> None:
    with aside(world):
        rng = random.Random(world.seed)
        before = Seen.of(both, world)
        for _ in range(2):
            options = asked(rng, world.now)
            ended = PaimonProcess().expire(table(world), grace="0s", sole_writer=True, **options)
            after = Seen.of(both, world)
            compare(before, after, world.shape.decoupled)
            assert PaimonProcess().check(table(world)).sound
            if not isinstance(ended, PlanView):
                assert ended.facts["state"] == "done"
                assert set(ended.facts["outcomes"]) <= {"deleted"}, ended.facts["outcomes"]


def test_what_is_undone_is_as_before(both: Paimon, world: World) -> None:
    with aside(world):
        before = {
            path: data for path, data in _contents(world).items() if "/snapshot/" not in path or "EARLIEST" not in path
        }
        ended = PaimonProcess().expire(table(world), grace="1h", **asked(random.Random(world.seed), world.now))
        if isinstance(ended, PlanView):
            pytest.skip("nothing expires")
        assert ended.facts["state"] == "committed"
        PaimonProcess().undo(str(ended.run.id))
        assert {path: data for path, data in _contents(world).items() if path in before} == before
        hints = {path for path in _contents(world) if path not in before}
        assert all(path.endswith(("EARLIEST", "LATEST")) for path in hints), hints


def test_a_purge_waits_a_minute_for_tags_that_are_on_their_way(world: World) -> None:
    with aside(world):
        clock = Clock()
        ended = PaimonProcess(clock=clock).expire(
            table(world), grace="0s", **asked(random.Random(world.seed), world.now)
        )
        if isinstance(ended, PlanView):
            pytest.skip("nothing expires")
        assert ended.facts["state"] == "committed"
        clock.advance(61_000)
        (again,) = PaimonProcess(clock=clock).resume(table(world))
        assert again.facts["state"] == "done"


def _contents(world: World) -> dict[str, bytes]:
    found = (path for path in world.root.rglob("*") if path.is_file() and "/_firnline/" not in str(path))
    return {str(path): path.read_bytes() for path in found}
