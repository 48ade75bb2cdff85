"""Plan, commit, purge and search on random repositories that the real library wrote, held against the library itself.

FIRNLINE_ICECHUNK_RUNS sets how many repositories.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import pytest
import zarr
import zarr.errors

from firnline.errors import RefusedForSafety
from firnline.formats.icechunk import names
from firnline.formats.icechunk.ids import ids_of
from firnline.formats.icechunk.names import LETTERS
from firnline.formats.icechunk.reading.repository import read_repository
from firnline.model.times import DAY_MS, format_instant
from firnline.ops.runs.presence import FEW_LOOKS
from firnline.ops.runs.status import RunStatus
from firnline.ports.listings import ObjectClass
from firnline.testing.dated import Clock, date
from firnline.testing.faults import CountingFault
from firnline.testing.folder_process import FolderProcess
from harness.lanes import by_lane

from .growing import SPECS, Growing, grown, made, microseconds, storage
from .repositories import STORE, body_of, needed, packed, referenced

SEEDS = range(int(os.environ.get("FIRNLINE_ICECHUNK_RUNS", str(by_lane(3, 3, 200)))))
FOLDERS = (names.CHUNKS, names.MANIFESTS, names.SNAPSHOTS, names.TRANSACTIONS)
HOUR_MS = 3_600_000
ROOT = "1CECHNKREP0F1RSTCMT0"
ALL: dict[str, Any] = {"blast_radius": 1.0}
MEANT: dict[str, Any] = {"grace": "0s", "consent": lambda plan: True, "blast_radius": 1.0}


@dataclass(frozen=True)
class World:
    """A repository of the library in a folder."""

    folder: Path
    growing: Growing

    @property
    def location(self) -> str:
        return str(self.folder)

    @property
    def opened(self) -> Any:
        return icechunk.Repository.open(storage(self.folder))

    def disk(self) -> dict[str, int]:
        """Returns the objects that a purge may take, with their sizes."""
        found = [path for each in FOLDERS for path in (self.folder / each).glob("*")]
        return {str(path): path.stat().st_size for path in found}

    def tips(self) -> dict[tuple[str, str], str]:
        repo = self.opened
        branches = {("branch", name): str(repo.lookup_branch(name)) for name in repo.list_branches()}
        return branches | {("tag", name): str(repo.lookup_tag(name)) for name in repo.list_tags()}

    def lines(self) -> dict[tuple[str, str], list[str]]:
        repo = self.opened
        return {ref: [each.id for each in repo.ancestry(snapshot_id=tip)] for ref, tip in self.tips().items()}

    def collected(self, at: datetime) -> Any:
        """Returns what the library's own collection would take."""
        return self.opened.garbage_collect(at, dry_run=True)

    def age(self) -> None:
        for path in self.disk():
            date(path, datetime.now(UTC).timestamp() * 1000 - 30 * DAY_MS)


def rows_of(repo: Any, snapshot: str) -> dict[str, Any]:
    """Returns every array of a snapshot; of those with chunks in files of others, which nobody has, their shapes."""
    session = repo.readonly_session(snapshot_id=snapshot)
    try:
        group = zarr.open_group(session.store, mode="r")
    except zarr.errors.GroupNotFoundError:  # a repository's first snapshot
        return {}
    return {name: _values(session, name, group[name]) for name in group.array_keys()}


def _values(session: Any, name: str, array: Any) -> Any:
    virtual = any(each.startswith("s3://others") for each in session.all_virtual_chunk_locations())
    return array.shape if virtual else np.asarray(array[:]).tolist()


@pytest.fixture(params=[(seed, spec) for seed in SEEDS for spec in SPECS], ids=str)
def world(tmp_path: Path, request: pytest.FixtureRequest) -> World:
    seed, spec = request.param
    folder = tmp_path / "r"
    return World(folder, grown(storage(folder), seed, spec))


def purged(process: FolderProcess, clock: Clock, world: World, **asked: Any) -> RunStatus:
    """Returns a run that was carried to its end."""
    ended = process.expire(world.location, grace="1h", **ALL, **asked)
    while isinstance(ended, RunStatus) and not ended.run.is_finished:
        clock.advance(2 * HOUR_MS)
        (ended,) = process.resume(world.location)
    assert isinstance(ended, RunStatus)
    return ended


@pytest.mark.sampled(2)
def test_what_goes_is_what_was_planned_and_what_stays_reads_the_same(world: World) -> None:
    choice, repo = random.Random(world.growing.count), world.opened
    times = sorted(
        microseconds(each.written_at) for tip in world.tips().values() for each in repo.ancestry(snapshot_id=tip)
    )
    cutoff = format_instant(choice.choice(times) // 1000 + 1)
    before, lines = world.disk(), world.lines()
    kept_rows = {tip: rows_of(repo, tip) for tip in world.tips().values()}
    clock = Clock()
    process = FolderProcess(clock=clock)
    asked: dict[str, Any] = {"older_than": cutoff, "retain_last": 1}
    plan = process.plan(world.location, **ALL, **asked).plan
    if not plan.expire:
        return
    ended = purged(process, clock, world, **asked)
    assert ended.run.state == "done"
    gone = before.keys() - world.disk().keys()
    assert (len(gone), sum(before[path] for path in gone)) == (plan.victims.all.files, plan.victims.all.bytes)
    expired = {each.id for each in plan.expire}
    after = world.lines()
    assert after.keys() == lines.keys()
    for ref, line in after.items():
        assert set(line) <= set(lines[ref]) - expired
        assert line[0] == lines[ref][0]
    again = world.opened
    assert {tip: rows_of(again, tip) for tip in kept_rows} == kept_rows
    assert process.check(world.location).sound


@pytest.mark.sampled(1)
def test_after_a_search_the_library_finds_nothing(world: World) -> None:
    """Nothing but what firnline never takes: what no ref leads to and version 2 still lists."""
    world.age()
    clock = Clock()
    process = FolderProcess(clock=clock)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    garbage = world.collected(tomorrow)
    before = world.disk()
    lines, rows = world.lines(), {tip: rows_of(world.opened, tip) for tip in world.tips().values()}
    plan, ended = process.orphans(world.location, **MEANT)
    assert ended is None or ended.state == "done"
    gone = before.keys() - world.disk().keys()
    assert plan.victims.all.files == len(gone)
    if world.growing.spec == 1:
        kinds = {kind.value: tally.files for kind, tally in plan.victims.by_kind.items()}
        assert kinds.get("chunk", 0) == garbage.chunks_deleted
        assert kinds.get("manifest", 0) == garbage.manifests_deleted
        assert kinds.get("snapshot", 0) == garbage.snapshots_deleted
        assert kinds.get("transaction-log", 0) == garbage.transaction_logs_deleted
        left = world.collected(tomorrow)
        assert (left.chunks_deleted, left.manifests_deleted, left.snapshots_deleted) == (0, 0, 0)
    assert world.lines() == lines
    assert {tip: rows_of(world.opened, tip) for tip in rows} == rows
    # Files that a test made old are younger by what they say themselves.
    assert {each.kind for each in process.check(world.location).presence.listed} <= {"clock"}


def test_what_an_open_session_may_have_written_stays(tmp_path: Path) -> None:
    """How long that may be is said in the configuration: thirty days are not enough for a session of sixty."""
    folder = tmp_path / "r"
    world = World(folder, grown(storage(folder), 1, SPECS[0]))
    world.opened.reset_branch("main", list(world.opened.ancestry(branch="main"))[-1].id)
    world.age()
    before = world.disk()
    plan, _ = FolderProcess(policy="longest-write: 60d").orphans(world.location, **MEANT)
    assert plan.classes[ObjectClass.YOUNG].files
    assert world.disk() == before
    plan, _ = FolderProcess().orphans(world.location, **MEANT)
    assert len(before) - len(world.disk()) == plan.victims.all.files > 0


@pytest.mark.sampled(1)
def test_expired_and_searched_the_library_finds_nothing(world: World) -> None:
    clock = Clock(ahead_ms=4 * DAY_MS)  # what resets and amends left may be of no open session any more
    process = FolderProcess(clock=clock)
    if process.plan(world.location, older_than="2100-01-01T00:00:00Z", retain_last=1, **ALL).plan.expire:
        purged(process, clock, world, older_than="2100-01-01T00:00:00Z", retain_last=1)
    world.age()
    process.orphans(world.location, **MEANT)
    left = world.collected(datetime.now(UTC) + timedelta(days=1))
    assert (left.chunks_deleted, left.manifests_deleted) == (0, 0)
    assert (left.snapshots_deleted, left.transaction_logs_deleted) == (0, 0)


@pytest.mark.sampled(1)
def test_expired_by_number_and_searched_the_library_finds_nothing(world: World) -> None:
    """Version 2 lists what resets and amends left, some of it younger than the threshold. It goes all the same, and the
    lines of refs are as the threshold alone leaves them.
    """
    clock = Clock(ahead_ms=4 * DAY_MS)
    process = FolderProcess(clock=clock)
    keep = 2 + world.growing.count % 4
    asked: dict[str, Any] = {"older_than": "2100-01-01T00:00:00Z", "retain_last": keep}
    before, parents = world.disk(), parents_in(world)
    plan = process.plan(world.location, **ALL, **asked).plan
    rows = {each.id: rows_of(world.opened, each.id) for each in plan.keep}
    if plan.expire:
        purged(process, clock, world, **asked)
    gone = before.keys() - world.disk().keys()
    assert (len(gone), sum(before[path] for path in gone)) == (plan.victims.all.files, plan.victims.all.bytes)
    if world.growing.spec > 1:
        assert {each: parent for each, parent in parents_in(world).items() if parent in rows} == {
            each: parent if parent in rows else ROOT for each, parent in parents.items() if each in rows and parent
        }
    assert {each: rows_of(world.opened, each) for each in rows} == rows
    world.age()
    process.orphans(world.location, **MEANT)
    found = read_repository(STORE, world.location)
    assert found.snapshots.keys() == referenced(found) == {each.id for each in plan.keep}
    left = world.collected(datetime.now(UTC) + timedelta(days=1))
    assert (left.chunks_deleted, left.manifests_deleted) == (0, 0)
    assert (left.snapshots_deleted, left.transaction_logs_deleted) == (0, 0)


def parents_in(world: World) -> dict[str, str | None]:
    return {each.id: each.parent for each in read_repository(STORE, world.location).snapshots.values()}


def test_a_branch_that_is_dropped_takes_what_only_it_held(tmp_path: Path) -> None:
    """On version 1; `repo` of version 2 lists it until it expires."""
    folder = tmp_path / "r"
    world = World(folder, Growing(made(storage(folder), 1), random.Random(0), 1))
    written(world, "main", 0)
    world.opened.create_branch("side", world.opened.lookup_branch("main"))
    before = world.disk()
    written(world, "side", 1)
    written(world, "main", 2)
    of_side = world.opened.lookup_branch("side")
    kept = {tip: rows_of(world.opened, tip) for tip in world.tips().values() if tip != of_side}
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    garbage = world.collected(tomorrow)  # a chunk that a session wrote twice
    clock = Clock()
    process = FolderProcess(clock=clock)
    plan = process.drop_branch(world.location, "side", dry_run=True, blast_radius=1.0).plan
    assert ([each.id for each in plan.expire], plan.expire_refs) == ([of_side], ("side",))
    ended = process.drop_branch(world.location, "side", grace="1h", blast_radius=1.0)
    while isinstance(ended, RunStatus) and not ended.run.is_finished:
        clock.advance(2 * HOUR_MS)
        (ended,) = process.resume(world.location)
    assert world.opened.list_branches() == {"main"}
    assert before.keys() <= world.disk().keys()
    assert {tip: rows_of(world.opened, tip) for tip in kept} == kept
    left = world.collected(tomorrow)
    assert (left.chunks_deleted, left.manifests_deleted, left.snapshots_deleted) == (garbage.chunks_deleted, 0, 0)


def written(world: World, branch: str, number: int) -> None:
    session = world.opened.writable_session(branch)
    group = zarr.open_group(session.store, mode="a")
    if "x" not in group:
        group.create_array("x", shape=(600,), chunks=(100,), dtype="i8", compressors=None)[:] = np.arange(600)
    group["x"][100 * number : 100 * number + 100] = 7 + number
    session.commit(f"commit {number}")


def filled(world: World, chunks: int) -> None:
    """Makes an array of so many chunks on main, none of which may lie inside of a manifest."""
    session = world.opened.writable_session("main")
    group = zarr.open_group(session.store, mode="a")
    array = group.create_array("many", shape=(100 * chunks,), chunks=(100,), dtype="i8", compressors=None)
    array[:] = np.arange(1, 100 * chunks + 1)
    session.commit("many chunks")


def spoil(folder: Path, snapshot: str, chunks: Set[str]) -> None:
    """Turns a bit of one of these ids in the manifest of a snapshot, which says how long the manifest is then."""
    letters = np.frombuffer(min(chunks).encode(), np.uint8).reshape(1, LETTERS)
    before = ids_of(letters)[0].tobytes()
    for manifest in needed(str(folder), {snapshot}).manifests.values():
        path, named_in = folder / names.MANIFESTS / manifest.id, folder / names.SNAPSHOTS / snapshot
        data = path.read_bytes()
        if body_of(data).count(before) == 1:
            break
    path.write_bytes(packed(data, body_of(data).replace(before, bytes([before[0] ^ 1]) + before[1:])))
    told, whole = struct.pack("<Q", manifest.size), named_in.read_bytes()
    assert body_of(whole).count(told) == 1
    now = struct.pack("<Q", path.stat().st_size)
    named_in.write_bytes(packed(whole, body_of(whole).replace(told, now)))


def expire_all(process: FolderProcess, clock: Clock, world: World) -> None:
    purged(process, clock, world, older_than="2100-01-01T00:00:00Z", retain_last=1)


def search(process: FolderProcess, clock: Clock, world: World) -> None:
    """The library itself expires, and firnline searches."""
    world.opened.expire_snapshots(datetime.now(UTC) + timedelta(days=1))
    world.age()
    process.orphans(world.location, **MEANT)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("many", [0, FEW_LOOKS])
@pytest.mark.parametrize("act", [expire_all, search])
def test_a_chunk_that_a_damaged_manifest_no_longer_names_is_not_purged(
    tmp_path: Path, act: Callable[[FolderProcess, Clock, World], None], many: int
) -> None:
    """A bit of an id turns, in a manifest that stays. The chunk that it meant is named by an expired one alone.

    Where there are many files, they are listed, and only the one that is not there is asked for.
    """
    folder = tmp_path / "r"
    world = World(folder, Growing(made(storage(folder), SPECS[0]), random.Random(0), SPECS[0]))
    if many:
        filled(world, many)
    begun = needed(world.location, {world.opened.lookup_branch("main")})
    written(world, "main", 0)
    written(world, "main", 1)
    tip, older = (each.id for each in list(world.opened.ancestry(branch="main"))[:2])
    after, first = (needed(world.location, {each}) for each in (tip, older))
    shared = after.chunks.keys() & first.chunks.keys() - begun.chunks.keys()
    assert (len(shared), len(after.chunks)) == (5, 6 + many)
    spoil(folder, tip, shared)
    before, clock = world.disk(), Clock()
    asked = CountingFault()
    process = FolderProcess(asked, clock=clock)
    with pytest.raises(RefusedForSafety, match="a manifest may be damaged"):
        act(process, clock, world)
    looks = [each for each in asked.trace if each[0] == "head" and f"/{names.CHUNKS}/" in each[1]]
    assert len(looks) == (1 if many else len(after.chunks))
    assert world.disk().keys() >= {path for path in before if f"/{names.CHUNKS}/" in path}


def test_the_time_to_undo_is_not_cut_by_who_approves_on_a_machine_whose_clock_is_behind(tmp_path: Path) -> None:
    """It begins with the approval: dated half a day early, it would be over at once on every other machine."""
    grown(storage(tmp_path / "r"), 1, SPECS[-1])
    clock, location = Clock(), str(tmp_path / "r")
    asked: dict[str, Any] = {"older_than": "2100-01-01T00:00:00Z", "retain_last": 1, **ALL}
    saved = FolderProcess(clock=clock).plan(location, save=True, grace="24h", **asked).plan.run
    clock.skew_ms = -12 * HOUR_MS
    with pytest.raises(RefusedForSafety, match="clock"):
        FolderProcess(clock=clock).approve(str(saved), by="ann")
    clock.skew_ms = 0
    FolderProcess(clock=clock).approve(str(saved), by="ann")
    (waiting,) = FolderProcess(clock=clock).resume(location)
    assert waiting.state == "planned"
    assert FolderProcess(clock=clock).undo(str(saved)).state == "cancelled"
