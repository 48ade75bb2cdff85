"""Paimon's own expiry beside firnline's: the same snapshots go, and what Paimon loses with them stays.

FIRNLINE_PAIMON_NATIVE sets how many tables (4 unless told, 200 in the long lane).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from firnline.formats.paimon.table import PaimonFormat
from firnline.policy.decide import decide
from firnline.policy.native import LARGEST, NativeRetention, Range
from firnline.policy.policy import Policy
from firnline.ports.formats import State
from firnline.stores.objects import ObjectStores
from firnline.testing.folder_process import FolderProcess
from harness.paimon.expiry import Retention
from harness.paimon.layout import SNAPSHOT, PaimonRoot
from harness.paimon.outcomes import paimon_expire
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon, PaimonWorld, grow

from .worlds import aside, grown, table

COUNT = int(os.environ.get("FIRNLINE_PAIMON_NATIVE", "200" if os.environ.get("FIRNLINE_FULL") else "4"))
FIRST = 66  # of this one Paimon's expiry loses files of the main branch, of the next one files of another
EVERYTHING_STAYS = Range(LARGEST, LARGEST, 0)
Record = Callable[[str, object], None]


@pytest.fixture(scope="module", params=range(FIRST, FIRST + COUNT))
def world(both: Paimon, request: pytest.FixtureRequest) -> Iterator[PaimonWorld]:
    with grown(both, request.param) as made:
        yield made


def loaded(world: PaimonWorld) -> State:
    return PaimonFormat(ObjectStores({})).load("t", str(world.folder))


def going(state: State, rule: Range, older_than: int) -> set[str]:
    """Returns the snapshots of the main branch that expire by this rule, where everything else stays."""
    ranges = dict.fromkeys(state.native.ranges or {}, EVERYTHING_STAYS)
    native = NativeRetention(0, 1, older_than_ms=older_than, ranges={**ranges, MAIN: rule})
    untagged = {name: ref for name, ref in state.refs.items() if name in ranges}
    decision = decide(state.graph, untagged, state.current, native, Policy(), now_ms=0, pins=state.pins)
    return {each for each in decision.expired if state.graph[each].number is not None}


@pytest.mark.sampled(2)
def test_the_same_snapshots_go(both: Paimon, world: PaimonWorld) -> None:
    (world.folder / "snapshot/EARLIEST").unlink(missing_ok=True)  # pypaimon leaves it above a snapshot that came back
    rng = random.Random(world.seed)
    state = loaded(world)
    for _ in range(6):
        least, more = rng.randint(1, 6), rng.randint(0, 6)
        limit = rng.choice([1, 3, 50])
        older_than = world.now - rng.choice([0, 1, 5, 24, 60]) * 3_600_000 - 1
        theirs = paimon_expire(both.java, world, Retention(least, least + more, older_than, limit))
        expired = {root.name for root in theirs.expired if root.kind == SNAPSHOT and root.branch == MAIN}
        rule = Range(least, least + more, 0, limit, by_next=False)
        assert going(state, rule, older_than) == expired, (rule, older_than)


def test_what_paimon_loses_stays(both: Paimon, world: PaimonWorld, record_property: Record) -> None:
    """Both expire all but the newest snapshot of the main branch."""
    theirs = paimon_expire(both.java, world, Retention(1, 1, world.now))
    record_property(
        "count: Paimon's own expiry, beside firnline's", {"roots that it left unreadable": len(theirs.lost)}
    )
    with aside(world):
        before = world.reader().reachable()
        FolderProcess().expire(
            table(world), retain_last=1, older_than=world.now, grace="0s", sole_writer=True, blast_radius=1.0
        )
        after = world.reader().reachable()
        lost = {root: needs.missing - before[_held(root, before)].missing for root, needs in after.items()}
        assert not {root: names for root, names in lost.items() if names}


def _held(root: PaimonRoot, before: dict[PaimonRoot, object]) -> PaimonRoot:
    """Returns what a root was before: a changelog that outlived its snapshot was that snapshot."""
    return root if root in before else replace(root, kind=SNAPSHOT)


def test_paimons_expiry_loses_files_where_firnlines_does_not(both: Paimon, tmp_path: Path) -> None:
    """The case of apache/paimon #6272, so that the comparison above is known to be able to fail."""
    world = grow(both, 67, tmp_path / "w")
    theirs = paimon_expire(both.java, world, Retention(1, 1, world.now))
    assert any(root.branch != MAIN for root in theirs.lost)
