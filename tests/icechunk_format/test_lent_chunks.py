"""Virtual references that lead to chunks of a repository: to its own, and to those of another one.

They own nothing. But what they lead to is needed as long as a snapshot that stays has them.
"""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import pytest
import zarr

from firnline.errors import RefusedForSafety, UnreadableMetadata
from firnline.formats.icechunk import names
from firnline.model.files import FileKind
from firnline.testing.folder_process import FolderProcess

from .growing import LIBRARY, SPECS, made, storage
from .open_writing import GRACE, LATER, Scene, commit, objects, opened, put
from .repositories import needed, say_one_more

VALUE = 3
"""What the chunk holds that only a virtual reference leads to, once its snapshot expired."""


def lent(scene: Scene) -> Path:
    """Returns the chunk that the third snapshot from the end has, and no later one."""
    tip, _, third, *_ = (each.id for each in opened(scene.folder).ancestry(branch="main"))
    (only,) = needed(scene.location, {third}).chunks.keys() - needed(scene.location, {tip}).chunks.keys()
    return scene.folder / names.CHUNKS / only


def reading(folder: Path, chunk: Path) -> Any:
    """Returns a repository that may read the chunks beside this one by virtual references."""
    prefix = f"{chunk.parent.as_uri()}/"
    store, config = icechunk.local_filesystem_store(str(chunk.parent)), icechunk.RepositoryConfig.default()
    container = {} if LIBRARY < (2, 0) else {"name": "there"}
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, store, **container))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        allowed = icechunk.containers_credentials({prefix: None})
        return icechunk.Repository.open(storage(folder), config=config, authorize_virtual_chunk_access=allowed)


def refer(folder: Path, chunk: Path, location: str, count: int = 1) -> None:
    """Commits an array whose chunks, all but the first, are virtual references to one chunk."""
    session = reading(folder, chunk).writable_session("main")
    group = zarr.open_group(session.store, mode="a")
    array = group.create_array("v", shape=(10 * count + 10,), chunks=(10,), dtype="i8", compressors=None, fill_value=0)
    array[:10] = 1
    for number in range(1, count + 1):
        session.store.set_virtual_ref(f"v/c/{number}", location, offset=0, length=80)
    session.commit("virtual references")


def is_readable(folder: Path, chunk: Path, count: int = 1) -> bool:
    group = zarr.open_group(reading(folder, chunk).readonly_session("main").store, mode="r")
    try:
        found = np.asarray(group["v"][10:]).tolist()
    except icechunk.IcechunkError:
        return False
    assert found == [VALUE] * 10 * count
    return True


def emptied(scene: Scene) -> None:
    """Everything that can go of the repository goes."""
    scene.plan()
    scene.go_on()
    assert [each.state for each in scene.go_on()] == ["done"]
    scene.search()


def test_what_no_reference_leads_to_goes(scene: Scene) -> None:
    """The tests below can fail."""
    chunk = lent(scene)
    emptied(scene)
    assert not chunk.exists()


@pytest.mark.parametrize("count", [1, 1200])
@pytest.mark.sampled(1)
def test_a_chunk_of_its_own(scene: Scene, count: int) -> None:
    """Version 2 compresses the locations of so many references."""
    chunk = lent(scene)
    refer(scene.folder, chunk, chunk.as_uri(), count)
    assert is_readable(scene.folder, chunk, count)
    emptied(scene)
    assert is_readable(scene.folder, chunk, count)
    scene.is_sound()


@pytest.mark.skipif(LIBRARY < (2, 0), reason="the library has no names for containers")
def test_a_chunk_of_its_own_by_the_name_of_a_container(scene: Scene) -> None:
    """The prefix behind the name is the reader's own setting."""
    chunk = lent(scene)
    refer(scene.folder, chunk, f"vcc://there/{chunk.name}")
    emptied(scene)
    assert is_readable(scene.folder, chunk)


def test_a_chunk_of_its_own_by_a_link(scene: Scene, tmp_path: Path) -> None:
    chunk = lent(scene)
    (tmp_path / "link").symlink_to(scene.folder, target_is_directory=True)
    linked = tmp_path / "link" / names.CHUNKS / chunk.name
    refer(scene.folder, linked, linked.as_uri())
    assert is_readable(scene.folder, linked)
    with pytest.raises(RefusedForSafety, match="differ only in"):
        emptied(scene)  # all but the search, which tells of the two names
    assert is_readable(scene.folder, linked)


def test_a_chunk_goes_once_no_reference_is_left(scene: Scene) -> None:
    chunk = lent(scene)
    refer(scene.folder, chunk, chunk.as_uri())
    emptied(scene)
    session = opened(scene.folder).writable_session("main")
    del zarr.open_group(session.store, mode="a")["v"]
    session.commit("no references")
    scene.clock.advance(4 * 86_400_000)
    emptied(scene)
    assert not chunk.exists()


def view_of(scene: Scene, tmp_path: Path) -> tuple[Path, Path]:
    """Returns a repository whose only data are references to a chunk of the scene's, and that chunk."""
    chunk, other = lent(scene), tmp_path / "view"
    made(storage(other), SPECS[0])
    refer(other, chunk, chunk.as_uri())
    assert is_readable(other, chunk)
    return other, chunk


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.sampled(1)
def test_a_chunk_of_another_repository(scene: Scene, tmp_path: Path, is_named: bool) -> None:
    """Who refers to its chunks is named in the configuration: no repository knows of any other."""
    other, chunk = view_of(scene, tmp_path)
    process = FolderProcess(clock=scene.clock, policy=f"shared-with: [{other}]" if is_named else "")
    process.expire(scene.location, older_than=LATER, retain_last=1, grace=GRACE, blast_radius=1.0)
    for _ in range(2):
        scene.clock.advance(120_000)
        (ended,) = process.resume(scene.location)
    assert ended.state == "done"
    assert is_readable(other, chunk) == is_named


def test_a_search_with_the_one_that_refers_to_its_chunks(scene: Scene, tmp_path: Path) -> None:
    other, chunk = view_of(scene, tmp_path)
    opened(scene.folder).expire_snapshots(datetime.now(UTC) + timedelta(days=1))
    before = objects(scene.folder)
    FolderProcess(clock=scene.clock).orphans(
        scene.location, grace="0s", consent=lambda plan: True, blast_radius=1.0, also=(str(other),)
    )
    assert len(objects(scene.folder)) < len(before)
    assert is_readable(other, chunk)


@pytest.mark.parametrize("how", ["expire", "search"])
def test_a_reader_that_names_less_than_it_says_stops_the_run(scene: Scene, tmp_path: Path, how: str) -> None:
    """One turned bit hides a reference, and is turned back by a copy: the chunk must still be there."""
    other, chunk = view_of(scene, tmp_path)
    say_one_more(other)
    process = FolderProcess(clock=scene.clock, policy=f"shared-with: [{other}]")
    asked: dict[str, Any] = {"older_than": LATER, "grace": GRACE, "blast_radius": 1.0}
    act = {
        "expire": partial(process.expire, retain_last=1, **asked),
        "search": partial(process.orphans, consent=lambda plan: True, also=(str(other),), **asked),
    }
    with pytest.raises((RefusedForSafety, UnreadableMetadata), match="references, a snapshot says"):
        act[how](scene.location)
    assert chunk.exists()


def test_a_search_of_one_that_names_less_than_it_says_is_refused(scene: Scene) -> None:
    before = objects(scene.folder)
    say_one_more(scene.folder)
    with pytest.raises(UnreadableMetadata, match="references, a snapshot says"):
        scene.search()
    assert objects(scene.folder) == before


def test_who_refers_to_chunks_of_another_takes_none_of_them(scene: Scene, tmp_path: Path) -> None:
    """Neither on the operator's word that files outside may go, nor is one of them missed."""
    other, chunk = view_of(scene, tmp_path)
    session = opened(other).writable_session("main")
    del zarr.open_group(session.store, mode="a")["v"]
    put(session, "x", 0, 1)
    session.commit("no references")
    commit(other, 1, 2)
    process = FolderProcess(clock=scene.clock)
    planned = process.plan(str(other), older_than=LATER, retain_last=1, blast_radius=1.0, include_outside=True).plan
    assert planned.expire
    assert FileKind.VIRTUAL not in planned.victims.by_kind
    process.expire(str(other), older_than=LATER, retain_last=1, grace=GRACE, blast_radius=1.0, include_outside=True)
    for _ in range(2):
        scene.clock.advance(120_000)
        (ended,) = process.resume(str(other))
    assert ended.state == "done"
    assert chunk.exists()


def test_a_chunk_of_another_is_not_looked_for(scene: Scene, tmp_path: Path) -> None:
    """It may be on another server, which only readers know how to reach."""
    other, chunk = view_of(scene, tmp_path)
    chunk.unlink()
    assert FolderProcess(clock=scene.clock).check(str(other)).sound
