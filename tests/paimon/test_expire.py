"""Runs on tables that real Paimon wrote: everything that is left reads as before, and nothing else went.

FIRNLINE_PAIMON_RUNS sets how many tables (6 unless told, 300 in the long lane).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from firnline.app.verbs.plan_views import PlanView
from firnline.testing.folder_process import FolderProcess
from harness.paimon.worlds import Paimon, PaimonWorld

from .worlds import Seen, aside, asked, compare, grown, is_sound, table

COUNT = int(os.environ.get("FIRNLINE_PAIMON_RUNS", "300" if os.environ.get("FIRNLINE_FULL") else "6"))
FIRST = int(os.environ.get("FIRNLINE_PAIMON_FIRST", "20"))


@pytest.fixture(scope="module", params=range(FIRST, FIRST + COUNT))
def world(both: Paimon, request: pytest.FixtureRequest) -> Iterator[PaimonWorld]:
    with grown(both, request.param) as made:
        yield made


@pytest.mark.sampled(1)
def test_a_run_frees_exactly_what_nothing_needs_any_more(both: Paimon, world: PaimonWorld) -> None:
    with aside(world):
        rng = random.Random(world.seed)
        before = Seen.of(both, world)
        for _ in range(2):
            options = asked(rng, world.now)
            ended = FolderProcess().expire(table(world), grace="0s", sole_writer=True, **options)
            after = Seen.of(both, world)
            compare(before, after)
            assert is_sound(world, after)
            if not isinstance(ended, PlanView):
                assert ended.state == "done"
                assert set(ended.outcomes) <= {"deleted"}, ended.outcomes
