"""Repositories inside of others, and repositories whose folders begin alike: none ever loses anything to another."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from firnline.errors import RefusedForSafety, UnsupportedFormat
from firnline.formats.icechunk import names
from firnline.testing.dated import Clock, copy_dated
from firnline.testing.folder_process import FolderProcess
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket

from .growing import SPECS, made
from .open_writing import LATER, LITTER, Scene, arrays, old_repository
from .test_s3 import in_bucket
from .test_s3_runs import commit, objects

Files = dict[Path, bytes]
FOLDERS = (names.CHUNKS, names.MANIFESTS, names.SNAPSHOTS, names.TRANSACTIONS, names.OVERWRITTEN)
INSIDE = ("inner", *FOLDERS, *(f"{folder}/inner" for folder in FOLDERS), "_firnline/inner")
"""Where the one may lie in the other. Among refs nothing else may lie."""


@pytest.fixture(scope="module", params=SPECS)
def one(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path_factory.mktemp("one") / "r"
    old_repository(folder, request.param)
    return folder


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another repository, not a copy of the first."""
    folder = tmp_path_factory.mktemp("other") / "r"
    old_repository(folder, SPECS[-1])
    return folder


def put_at(source: Path, folder: Path) -> Scene:
    shutil.copytree(source, folder, copy_function=copy_dated, dirs_exist_ok=True)
    return Scene(folder, set())


def expired(scene: Scene) -> None:
    scene.plan()
    scene.go_on()
    assert [each.state for each in scene.go_on()] == ["done"]


def searched(scene: Scene, also: tuple[str, ...] = ()) -> int:
    """Returns how many objects a search took."""
    plan, _ = scene.process().orphans(
        scene.location, older_than=LATER, grace="0s", consent=lambda plan: True, blast_radius=1.0, also=also
    )
    return plan.victims.all.files


def files_of(source: Path, folder: Path) -> Files:
    """Returns the objects that a repository brought here, as they are now."""
    every = (path.relative_to(source) for path in source.rglob("*") if path.is_file())
    return {path: (folder / path).read_bytes() for path in every if (folder / path).exists()}


@pytest.mark.parametrize(("first", "second"), [("b", "bc"), ("bc", "b"), ("b", "b.old"), ("b", "b#1")])
@pytest.mark.sampled(1)
def test_folders_that_begin_alike(one: Path, other: Path, tmp_path: Path, first: str, second: str) -> None:
    scene, beside = put_at(one, tmp_path / first), put_at(other, tmp_path / second)
    before, wanted = files_of(other, beside.folder), arrays(scene.folder)
    expired(scene)
    assert searched(scene) == LITTER
    assert files_of(other, beside.folder) == before
    assert arrays(scene.folder) == wanted
    for each in (scene, beside):
        each.is_sound()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("place", INSIDE)
def test_the_outer_one_takes_nothing_of_the_inner_one(one: Path, other: Path, tmp_path: Path, place: str) -> None:
    """A search must be told of the inner one: nobody but the operator knows whose it is."""
    outer = put_at(one, tmp_path / "a")
    inner = put_at(other, tmp_path / "a" / place)
    before, wanted = files_of(other, inner.folder), arrays(outer.folder)
    expired(outer)
    with pytest.raises(RefusedForSafety, match="which no configured catalog has"):
        searched(outer)
    assert searched(outer, also=(inner.location,)) == LITTER
    assert files_of(other, inner.folder) == before
    assert arrays(outer.folder) == wanted
    assert arrays(inner.folder) == arrays(other)
    for each in (outer, inner):
        each.is_sound()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", INSIDE)
def test_the_inner_one_takes_nothing_of_the_outer_one(one: Path, other: Path, tmp_path: Path, place: str) -> None:
    outer = put_at(one, tmp_path / "a")
    inner = put_at(other, tmp_path / "a" / place)
    before, wanted = files_of(one, outer.folder), arrays(inner.folder)
    expired(inner)
    if (
        place == names.SNAPSHOTS
    ):  # those of the outer one lie in the inner one's folder, and no ref of its leads to them
        with pytest.raises(RefusedForSafety, match="nobody can tell whose"):
            searched(inner)
    else:
        assert searched(inner) == LITTER
    assert files_of(one, outer.folder) == before
    assert arrays(inner.folder) == wanted
    for each in (outer, inner):
        each.is_sound()


@pytest.mark.parametrize("place", [names.REFS, f"{names.REFS}/branch.main"])
def test_a_repository_among_the_refs_of_another(one: Path, other: Path, tmp_path: Path, place: str) -> None:
    outer = put_at(one, tmp_path / "a")
    inner = put_at(other, tmp_path / "a" / place)
    before = files_of(one, outer.folder), files_of(other, inner.folder)
    for act in (outer.plan, outer.search, outer.is_sound):
        with pytest.raises(UnsupportedFormat, match="lies among the refs"):
            act()
    assert (files_of(one, outer.folder), files_of(other, inner.folder)) == before


def test_a_copy_of_a_repository_inside_of_it(one: Path, tmp_path: Path) -> None:
    """It has the same first snapshot, and so the same uuid, and is another one all the same."""
    outer = put_at(one, tmp_path / "a")
    inner = put_at(one, tmp_path / "a" / "copy")
    before = files_of(one, inner.folder)
    expired(outer)
    with pytest.raises(RefusedForSafety, match="which has it in another place"):
        searched(outer)
    assert files_of(one, inner.folder) == before


@pytest.mark.full
def test_prefixes_that_begin_alike_in_a_bucket(moto_server: Server) -> None:
    """A listing of `lake/b` without its slash would show `lake/bc` too."""
    bucket, clock = unique("icealike"), Clock()
    make_bucket(moto_server, bucket)
    for name in ("b", "bc", "b/inner"):
        repo = made(in_bucket(moto_server, bucket, f"lake/{name}"), SPECS[0])
        for number in range(3):
            commit(repo, number)
    before = {name: objects(moto_server, f"s3://{bucket}/lake/{name}").keys() for name in ("b/inner", "bc")}
    process, location = FolderProcess(clock=clock, settings=moto_server.settings), f"s3://{bucket}/lake/b"
    process.expire(location, older_than=LATER, retain_last=1, grace="1m", blast_radius=1.0)
    for _ in range(2):
        clock.advance(120_000)
        (ended,) = process.resume(location)
    assert ended.state == "done"
    clock.advance(40 * 86_400_000)
    process.orphans(
        location, grace="0s", consent=lambda plan: True, blast_radius=1.0, also=(f"s3://{bucket}/lake/b/inner",)
    )
    assert {name: objects(moto_server, f"s3://{bucket}/lake/{name}").keys() for name in before} == before
    for name in ("b", "bc", "b/inner"):
        assert process.check(f"s3://{bucket}/lake/{name}").sound, name
