"""Repositories as the library wrote them: the same refs, history and manifests as it tells, and not a chunk more or
less than it would keep.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest

from firnline.formats.icechunk.reading.detection import has_repository
from firnline.formats.icechunk.reading.objects import snapshot_at
from firnline.formats.icechunk.reading.repo import read_repo
from firnline.formats.icechunk.reading.repository import read_repository
from harness.lanes import by_lane

from .growing import SPECS, answers, grown, made, storage, with_files_of_others
from .repositories import STORE, answered, body_of, is_as_answered, lying

SEEDS = range(by_lane(2, 3, 60))


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_repositories_are_read_as_the_library_reads_them(tmp_path: Path, seed: int, spec: int) -> None:
    folder = tmp_path / "r"
    made = grown(storage(folder), seed, spec)
    assert has_repository(STORE, str(folder))
    wanted = is_as_answered(folder, answers(made))
    made.repo.garbage_collect(datetime.now(UTC) + timedelta(days=1))
    assert lying(folder, "snapshots") == wanted.snapshots
    assert lying(folder, "manifests") == set(wanted.manifests)
    assert lying(folder, "chunks") == set(wanted.chunks)


def test_all_kinds_of_chunks_are_met(tmp_path: Path) -> None:
    met = []
    for seed in SEEDS:
        made = grown(storage(tmp_path / str(seed)), seed, SPECS[-1])
        met.append(is_as_answered(tmp_path / str(seed), answers(made)))
    assert any(each.inline for each in met)
    assert any(each.virtual for each in met)
    assert all(each.chunks for each in met)


@pytest.mark.parametrize("number", range(5))
def test_what_a_later_library_wrote_is_read_as_that_library_read_it(recorded: list[Path], number: int) -> None:
    said = answered(recorded[number])
    assert said["library"] == "2.3.0"
    is_as_answered(recorded[number], said)


def test_version_2_lists_snapshots_that_no_ref_leads_to(recorded: list[Path]) -> None:
    found = [read_repository(STORE, str(folder)) for folder in recorded]
    listed = [set(each.snapshots) for each in found]
    assert all(lying(folder, "snapshots") >= each for folder, each in zip(recorded, listed, strict=True))
    assert all(each.repo is not None and each.repo.updates for each in found)
    pruned = [len(info.pruned) for each in found for info in each.snapshots.values()]
    assert sum(pruned) > 0


def test_earlier_repos_are_read_too(recorded: list[Path]) -> None:
    backups = [path for folder in recorded for path in (folder / "overwritten").iterdir()]
    assert len(backups) > 8
    assert all(read_repo(path.read_bytes()).branches["main"] for path in backups)


def test_an_upgraded_repository_has_snapshots_of_both_versions(recorded: list[Path]) -> None:
    folder = recorded[3]
    found = read_repository(STORE, str(folder))
    assert {snapshot_at(STORE, str(folder), name).spec for name in found.snapshots} == {1, 2}


@pytest.mark.parametrize("spec", SPECS)
def test_chunks_in_files_of_others_are_counted_and_belong_to_nobody_here(tmp_path: Path, spec: int) -> None:
    found = is_as_answered(tmp_path / "r", answers(with_files_of_others(storage(tmp_path / "r"), spec, 1_500)))
    assert (len(found.chunks), found.inline, found.virtual) == (1, 0, 1_499)


def test_names_of_files_of_others_may_be_compressed(recorded: list[Path]) -> None:
    found = is_as_answered(recorded[4], answered(recorded[4]))
    assert (len(found.chunks), found.inline, found.virtual) == (1, 0, 1_499)
    (manifest,) = found.manifests
    assert b"s3://others/measured/2026/00036" not in body_of((recorded[4] / "manifests" / manifest).read_bytes())


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", ["x y", "a%b", "a#b", "é", "..x", "MAIN"])
def test_refs_of_any_name_hold_their_snapshots(tmp_path: Path, spec: int, name: str) -> None:
    """On local files the library writes some names of version 1 with percent signs, and then lists no tag of them: its
    own collection would take what such a tag holds. Here all that lies among the refs counts, by the name that it has.
    """
    repo = made(storage(tmp_path / "r"), spec)
    first = repo.lookup_branch("main")
    repo.create_tag(name, first)
    repo.create_branch(name, first)
    assert repo.lookup_tag(name) == first
    found = read_repository(STORE, str(tmp_path / "r"))
    assert set(map(unquote, found.tags)) == {unquote(name)}
    assert set(map(unquote, found.branches)) == {"main", unquote(name)}
    assert set(found.tags.values()) == {first}
