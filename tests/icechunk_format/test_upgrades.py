"""A repository is upgraded from version 1 to 2 in the middle of a run or a search.

The library says that an upgrade wants to be alone. Somebody will start one while a run waits all the same.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import pytest
import zarr

from firnline.errors import FirnlineError
from firnline.formats.icechunk import names
from firnline.formats.icechunk.reading.detection import has_repository
from firnline.testing.faults import Acting, CountingFault, Fault
from harness.lanes import by_lane

from .growing import LIBRARY
from .open_writing import HISTORY, OpenWriter, Scene, commit, objects, old_repository, opened
from .repositories import STORE
from .test_one_moment import Interrupted

pytestmark = pytest.mark.skipif(LIBRARY < (2, 0), reason="the library writes version 1 only")

SAMPLES = by_lane(4, 6, 120)
Tips = dict[str, list[int]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """A repository of version 1 whose tag and second branch lead to the middle of its line."""
    folder = tmp_path_factory.mktemp("first") / "r"
    litter = old_repository(folder, 1)
    line = [each.id for each in opened(folder).ancestry(branch="main")]
    opened(folder).create_tag("kept", line[2])
    opened(folder).create_branch("side", line[3])
    commit(folder, 6, 61, "side")
    return folder, litter


def upgrade(folder: Path, clean: bool = True) -> None:
    icechunk.upgrade_icechunk_repository(opened(folder), dry_run=False, delete_unused_v1_files=clean)


def tips(folder: Path) -> Tips:
    """Returns what readers find at every ref."""
    repo = opened(folder)
    sessions: dict[str, Any] = {name: repo.readonly_session(branch=name) for name in repo.list_branches()}
    sessions |= {f"tag {name}": repo.readonly_session(tag=name) for name in repo.list_tags()}
    groups = {name: zarr.open_group(each.store, mode="r") for name, each in sessions.items()}
    return {name: np.asarray(group["x"][:]).tolist() for name, group in groups.items()}


def carried(scene: Scene, act: str, fault: Fault | None = None) -> None:
    if act == "search":
        scene.search(fault)
        return
    scene.plan(fault)
    scene.go_on(fault)
    scene.go_on(fault)


def places_of(counting: CountingFault) -> list[int]:
    """Returns some requests, and each of the deletions: so it is between any two files of a purge."""
    deletes = [at for at, (verb, _) in enumerate(counting.trace, 1) if verb == "delete"]
    some = random.Random(2).sample(range(1, counting.requests + 1), min(SAMPLES, counting.requests))
    return sorted({*some, *deletes[:: max(1, len(deletes) // SAMPLES)]})


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("act", ["expire", "search"])
def test_an_upgrade_at_any_request(copies: Callable[[], Scene], act: str, clean: bool) -> None:
    first, counting = copies(), CountingFault()
    wanted, before = tips(first.folder), len(objects(first.folder))
    carried(first, act, counting)
    assert tips(first.folder) == wanted
    ended = []
    for at in places_of(counting):
        scene = copies()
        acting = Acting(at, lambda: upgrade(scene.folder, clean))  # noqa: B023
        with suppress(FirnlineError):
            carried(scene, act, acting)
        if acting.before is None:  # the run ended with fewer requests
            upgrade(scene.folder, clean)
        assert tips(scene.folder) == wanted, at
        scene.is_sound()
        with suppress(FirnlineError):
            scene.go_on()
            scene.go_on()
        assert tips(scene.folder) == wanted, at
        scene.is_sound()
        ended.append(len(objects(scene.folder)) < before)
        commit(scene.folder, 7, 99)
        shutil.rmtree(scene.folder)
    assert sum(ended) > len(ended) // 2


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("waits", [0, 1])
def test_a_run_goes_on_after_an_upgrade(scene: Scene, waits: int, clean: bool) -> None:
    """Between plan and commit, and between commit and purge: as if the repository had always been of version 2, or of
    version 1 until the commit. The library's own collection finds nothing afterwards.
    """
    wanted = tips(scene.folder)
    scene.plan()
    for _ in range(waits):
        scene.go_on()
    upgrade(scene.folder, clean)
    for _ in range(2 - waits):
        (ended,) = scene.go_on()
    assert ended.state == "done"
    assert tips(scene.folder) == wanted
    shutil.rmtree(scene.folder / names.REFS, ignore_errors=True)  # those that were left, with the tags that are gone
    scene.search()
    left = opened(scene.folder).garbage_collect(datetime.now(UTC) + timedelta(days=1), dry_run=True)
    assert (left.chunks_deleted, left.manifests_deleted, left.snapshots_deleted) == (0, 0, 0)
    assert len(list(opened(scene.folder).ancestry(branch="main"))) < HISTORY


def test_what_was_tagged_before_the_upgrade_outlives_the_purge(scene: Scene) -> None:
    """The run was committed in version 1, and its purge reads the refs of version 2."""
    expired = [each.id for each in opened(scene.folder).ancestry(branch="main")][1]
    wanted = tips(scene.folder)
    opened(scene.folder).create_tag("probe", expired)
    value = tips(scene.folder)["tag probe"]
    opened(scene.folder).delete_tag("probe")
    scene.plan()
    scene.go_on()
    opened(scene.folder).create_tag("again", expired)
    upgrade(scene.folder)
    assert [each.state for each in scene.go_on()] == ["done"]
    assert tips(scene.folder) == {**wanted, "tag again": value}
    scene.is_sound()


def test_an_undo_after_an_upgrade(scene: Scene) -> None:
    scene.plan()
    upgrade(scene.folder)
    wanted, before = tips(scene.folder), objects(scene.folder)
    (waiting,) = scene.process().runs(scene.location)
    scene.process().undo(str(waiting.run.id))
    assert scene.go_on() == []
    assert (tips(scene.folder), objects(scene.folder)) == (wanted, before)


@pytest.mark.parametrize("clean", [True, False])
def test_a_branch_is_dropped_over_an_upgrade(scene: Scene, clean: bool) -> None:
    wanted = tips(scene.folder)
    scene.process().drop(scene.location, ["side"], grace="1m", blast_radius=1.0)
    upgrade(scene.folder, clean)
    with suppress(FirnlineError):  # refs of version 1 that were left may name what no history has any more
        scene.go_on()
        scene.go_on()
    found = tips(scene.folder)
    assert found.keys() >= wanted.keys() - {"side"}
    assert all(wanted[name] == values for name, values in found.items())


def test_a_session_of_version_1_that_commits_after_the_upgrade(scene: Scene) -> None:
    """Its ref may be one that `repo` knows nothing of: then there are two histories, and nothing goes of either."""
    writer = OpenWriter(scene.folder)
    writer.run(range(4))
    scene.plan()
    scene.go_on()
    upgrade(scene.folder, clean=False)
    wanted = tips(scene.folder)
    with suppress(icechunk.IcechunkError, icechunk.ConflictError):
        writer.commit()
    before = objects(scene.folder)
    said = None
    try:
        scene.go_on()
    except FirnlineError as error:
        said = str(error)
    assert writer.own <= objects(scene.folder)
    assert tips(scene.folder) == wanted or arrays_of(writer)
    assert said is None or ("two histories" in said and objects(scene.folder) == before)


def arrays_of(writer: OpenWriter) -> bool:
    writer.is_whole()
    return True


def test_a_search_beside_refs_that_an_upgrade_left(scene: Scene) -> None:
    """They are the repository's own: taken for another's, they stopped every search."""
    upgrade(scene.folder, clean=False)
    wanted = tips(scene.folder)
    _, ended = scene.search()
    assert ended.state == "done"
    assert not scene.litter & objects(scene.folder)
    assert tips(scene.folder) == wanted


def test_a_repository_is_one_at_every_moment_of_its_upgrade(copies: Callable[[], Scene]) -> None:
    for at in range(4):
        scene = copies()
        store = Interrupted(lambda: upgrade(scene.folder), at)  # noqa: B023
        assert has_repository(store, scene.location), at  # type: ignore[arg-type]
        assert has_repository(STORE, scene.location)
