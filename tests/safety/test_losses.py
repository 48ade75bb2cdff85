"""Losses that other systems had, each as a test that would lose the same data if firnline made the same mistake.

`COVERED` at the end lists them by number; the numbers that are not there need a listing of the store and belong to
orphan removal. Issue numbers are the systems' own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firnline.app.places import TablePlace, places_of
from firnline.errors import (
    BadTimestamp,
    LeaseHeld,
    OutcomeUnknown,
    RefusedForSafety,
    StoreError,
    UnreadableMetadata,
    UnsupportedFormat,
)
from firnline.lake import Lake
from firnline.model.files import FileKind
from firnline.model.times import DAY_MS, HOUR_MS, parse_instant
from firnline.ops.runs.status import RunStatus
from firnline.policy.parse import Section
from firnline.ports.catalogs import Attempt, Commit, Step, Still, SwapOutcome, TableName, Version, always
from firnline.ports.formats import Amendment
from firnline.testing.faults import Answer, Died, PortRequest
from firnline.testing.manifests import AvroLayout, Item
from firnline.testing.tables import QuickFiles, SmallTable
from harness.days import process_on_its_day
from harness.disks import local
from harness.processes import Process
from harness.world import World

# ---------------------------------------------------------------- tables


def days_of(world: World, *acts: Callable[[], Any], newest: int = 10) -> list[Any]:
    """Returns what the acts return; each takes place ten days after the one before, the last `newest` days ago."""
    made = []
    for place, act in enumerate(acts):
        world.clock.ahead_ms = -(newest + 10 * (len(acts) - 1 - place)) * DAY_MS
        made.append(act())
    world.clock.ahead_ms = 0
    return made


@pytest.fixture
def empty(quick_folder: Path) -> World:
    return World.make(quick_folder / "world", history=False)


def expire_and_purge(world: World, **options: Any) -> RunStatus:
    carried = process_on_its_day(world).expire(world.table, grace="0s", **options)
    assert isinstance(carried, RunStatus)
    assert carried.state == "done"
    return carried


def purge_small(table: SmallTable) -> tuple[set[str], set[str]]:
    """Expires what the table's own retention lets go; returns the paths that went and those that had to go."""
    table.publish()
    before = {path for path in table.made if local(path).exists()}
    lake = Lake(places_of(Section(), engine="local"))
    expired = {int(each.id) for each in lake.plan(table.location).plan.expire}
    due = table.victims(expired)
    carried = lake.expire(table.location, grace="0s", include_outside=True, blast_radius=1.0)
    assert isinstance(carried, RunStatus)
    assert carried.state == "done"
    return before - {path for path in table.made if local(path).exists()}, due


@pytest.fixture(params=[1, 2, 3])
def small(request: pytest.FixtureRequest, quick_folder: Path) -> SmallTable:
    return SmallTable(QuickFiles(), str(quick_folder / "small"), AvroLayout(version=request.param))


# ---------------------------------------------------------------- 1 to 4: lineage is not reachability


def test_loss_01_missing_parent(empty: World) -> None:
    """Incremental cleanup trusted an ancestor walk that ends silently at a missing parent (iceberg#13568)."""
    writer = empty.writer
    first, second, third = days_of(empty, lambda: writer.append(2), writer.append, writer.append)
    expire_and_purge(empty, older_than=empty.clock() - 25 * DAY_MS)
    assert set(empty.rows()) == {second, third}
    writer.change(lambda document: document["snapshots"][0].update({"parent-snapshot-id": 123}))
    expire_and_purge(empty)
    assert set(empty.rows()) == {third}
    assert len(writer.ledger.truths[third].data) == 4
    assert set(writer.ledger.truths[first].data) < set(writer.ledger.truths[third].data)
    empty.check()


def test_loss_02_middle_snapshot(empty: World) -> None:
    """Expiring a snapshot in the middle deleted files that an older, tagged one needs (iceberg#10982)."""
    writer = empty.writer

    def replace_first() -> int:
        return writer.overwrite(sorted(item.path for item in writer.live())[:1], 1)

    oldest, middle, newest = days_of(empty, lambda: writer.append(2), replace_first, replace_first)
    writer.set_ref("audit", oldest, "tag")
    expire_and_purge(empty)
    assert set(empty.rows()) == {oldest, newest}
    assert middle not in empty.rows()
    empty.check()


def test_loss_03_cherry_pick(empty: World) -> None:
    """Data of a staged snapshot that was picked into main went with the staged one (iceberg#744)."""
    writer = empty.writer
    _, staged, _ = days_of(empty, writer.append, lambda: writer.append(on=None), empty.actions.cherry_pick)
    expire_and_purge(empty)
    assert staged not in empty.rows()
    (head,) = empty.rows()
    assert set(writer.ledger.truths[staged].data) == set(writer.ledger.truths[head].data)
    empty.check()


def test_loss_04_added_again(empty: World) -> None:
    """'An entry says DELETED, so the file is garbage': it had been added again (iceberg#2131, #8255)."""
    writer = empty.writer
    item = writer.data_file()
    days_of(
        empty,
        lambda: writer.commit("append", [item]),
        lambda: writer.overwrite({item.path}),
        lambda: writer.commit("append", [item]),
    )
    expire_and_purge(empty)
    (head,) = empty.rows()
    assert item.path in writer.ledger.truths[head].data
    empty.check()


# ---------------------------------------------------------------- 6 to 8: one name per file, every kind of file


@pytest.mark.parametrize(
    ("expired", "kept"),
    [
        ("s3://bucket/t/x", "s3a://bucket/t/x"),
        ("s3a://bucket/t/x", "s3n://bucket/t/x"),
        ("s3://Bucket/t/x", "s3://bucket/t/x"),
        ("gcs://bucket/t/x", "gs://bucket/t/x"),
        ("s3://bucket/t//x", "s3://bucket/t/x"),
        ("hdfs:///t/x", "hdfs://namenode:8020/t/x"),
        ("hdfs://old-name/t/x", "hdfs://new-name/t/x"),
    ],
)
def test_loss_06_spellings(quick_folder: Path, expired: str, kept: str) -> None:
    """s3 and s3a, or two authorities, compared as strings: a live file looks unneeded (iceberg#4194)."""
    table = SmallTable(QuickFiles(), str(quick_folder / "small"))
    garbage = "s3://bucket/t/garbage"
    table.register([Item(expired, 10), Item(garbage, 10)])
    table.overwrite({expired, garbage}, 1)
    table.register([Item(kept, 10)])
    table.publish()
    view = Lake(places_of(Section(), engine="local")).plan(table.location, include_outside=True, blast_radius=1.0)
    named = {each["path"] for each in view.files()}
    assert garbage in named
    assert expired not in named
    assert kept not in named


@pytest.mark.parametrize("spelled", ["{path}", "file:{path}", "file://localhost{path}", "file:///{path}"])
@pytest.mark.parametrize("when", ["before the plan", "in grace"])
def test_loss_06_spellings_on_disk(empty: World, spelled: str, when: str) -> None:
    """The same with real files: what a later snapshot needs under another spelling stays on the disk."""
    writer = empty.writer
    item = writer.data_file()
    other = Item(spelled.format(path=item.path.removeprefix("file://")), item.size)
    writer.ledger.contents[other.path] = writer.ledger.contents[item.path]
    days_of(empty, lambda: writer.commit("append", [item]), lambda: writer.overwrite({item.path}), newest=6)
    if when == "before the plan":
        writer.commit("append", [other])
    run = process_on_its_day(empty).expire(empty.table)
    assert isinstance(run, RunStatus)
    if when == "in grace":
        writer.commit("append", [other])
    empty.clock.advance(25 * HOUR_MS)
    assert process_on_its_day(empty).purge(run.id).state == "done"
    assert local(item.path).exists()


def test_loss_07_puffin_and_statistics(small: SmallTable) -> None:
    """Puffins and statistics were not among the live files (iceberg#5795, trino#19965, nessie#9879, amoro#1959)."""
    first = small.append(3)
    small.statistics(first)
    small.statistics(first, by_partition=True)
    shared = small.statistics(first)
    second = small.append(2)
    small.delete_rows(small.live()[:2])
    small.overwrite(small.live()[:1])
    kept = small.append(1)
    small.tag("audit", second)
    small.statistics(kept, shared)
    small.statistics(kept, by_partition=True)
    small.statistics(second)
    went, due = purge_small(small)
    assert went == due
    assert {small.made[path].kind for path in went} >= {FileKind.STATISTICS, FileKind.PARTITION_STATISTICS}
    assert shared not in went
    for snapshot in (second, kept):
        assert all(local(path).exists() for path in small.reachable(snapshot))


def test_loss_07_one_live_vector_keeps_its_puffin(quick_folder: Path) -> None:
    """One vector of a Puffin is replaced, its neighbours are live: the file must stay (iceberg#17456)."""
    small = SmallTable(QuickFiles(), str(quick_folder / "small"), AvroLayout(version=3))
    small.append(3)
    small.delete_rows(small.live())
    small.delete_rows(small.live()[:1])
    head = small.append(1)
    went, due = purge_small(small)
    assert went == due
    vectors = {path for path in small.reachable(head) if small.made[path].kind is FileKind.DELETION_VECTORS}
    assert len(vectors) == 2
    assert not vectors & went


def test_loss_08_deletes(small: SmallTable) -> None:
    """Equality deletes and delete manifests were not among the live files (nessie#7481, ARCTIC-1386)."""
    if small.version == 1:
        small.append(2)  # version 1 has no deletes: only its inline manifests may be forgotten
        small.append(1, inline=True)
        head = small.append(1, inline=True)
    else:
        small.append(2)
        small.delete_rows(small.live(), equality=True)
        small.overwrite(small.live()[:1])
        small.delete_rows(small.live()[:1])
        head = small.append(1)
        kinds = {small.made[path].kind for path in small.reachable(head)}
        assert FileKind.EQUALITY_DELETES in kinds
    went, due = purge_small(small)
    assert went == due
    assert went
    assert all(local(path).exists() for path in small.reachable(head))


# ---------------------------------------------------------------- 12, 13, 17, 20: when a decision counts


class JustBefore:
    """Somebody acts right before a request of one kind is sent, the first time only."""

    def __init__(self, verb: str, action: Callable[[], Any]) -> None:
        self.verb, self.action = verb, action
        self.acted = False

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if request.verb == self.verb and not self.acted:
            self.acted = True
            self.action()
        return request.send()


@pytest.mark.parametrize("action", ["append", "branch", "rewrite", "cherry_pick", "roll_back"])
def test_loss_12_concurrent_update(world: World, action: str) -> None:
    """Collection overwrote what somebody committed meanwhile: no compare-and-swap (icechunk#1369)."""
    seen: list[tuple[set[int], dict[str, Any]]] = []

    def act() -> None:
        assert getattr(world.actions, action)()
        seen.append((set(world.rows()), dict(world.writer.document()["refs"])))

    fault = JustBefore("commit", act)
    run = process_on_its_day(world, fault).expire(world.table, grace="0s")
    assert isinstance(run, RunStatus)
    (snapshots, refs), after = seen[0], world.writer.document()
    planned = {int(each) for each in run.expired}
    assert set(world.rows()) == snapshots - planned
    assert {name: ref for name, ref in refs.items() if name != "aged"} == after["refs"]
    world.check()


def test_loss_13_two_clocks(empty: World) -> None:
    """Two clocks straddled the cut-off and a snapshot was half deleted (icechunk#2310)."""
    writer = empty.writer
    _, edge, _ = days_of(empty, writer.append, writer.compact, writer.compact, newest=1)
    (moment,) = [each["timestamp-ms"] for each in writer.document()["snapshots"] if each["snapshot-id"] == edge]
    empty.policy = "keep: {within: 30d}"
    empty.clock.ahead_ms += moment + 30 * DAY_MS - empty.clock() - 10 * 60_000  # ten minutes before the edge
    saved = process_on_its_day(empty).plan(empty.table, save=True).plan
    assert str(edge) in {each.id for each in saved.keep}
    empty.clock.advance(HOUR_MS)  # at commit the snapshot is past the cut-off; nobody was shown that
    process_on_its_day(empty).commit(str(saved.run))
    assert edge in empty.rows()
    empty.clock.advance(25 * HOUR_MS)
    process_on_its_day(empty).purge(str(saved.run))
    empty.check()


def test_loss_17_boundaries(empty: World) -> None:
    """One too few was kept: 'num commits' off by one, the version at the cut-off not kept (nessie#9096, HUDI-7226)."""
    writer = empty.writer
    made = days_of(empty, *[writer.append] * 5)
    at = {each["snapshot-id"]: each["timestamp-ms"] for each in writer.document()["snapshots"]}

    def kept(**options: Any) -> list[int]:
        plan = process_on_its_day(empty).plan(empty.table, **options).plan
        return sorted(int(each.id) for each in plan.keep)

    everything = at[made[-1]] + 1
    assert kept(older_than=everything) == made[-1:]
    assert kept(older_than=everything, retain_last=3) == made[-3:]
    assert kept(older_than=at[made[2]]) == made[2:]
    assert kept(older_than=at[made[2]] + 1) == made[3:]
    assert kept(now=at[made[1]] + 5 * DAY_MS) == made[1:]
    assert kept(now=at[made[1]] + 5 * DAY_MS + 1) == made[2:]
    assert kept(keep={"last": "2"}) == made[-2:]
    assert kept(keep={"within": "10d"}, now=at[made[3]] + 10 * DAY_MS) == made[3:]


def test_loss_20_stale_decision(world: World) -> None:
    """A rule was lengthened and what had been called expired before stayed so (lakeFS#5741)."""
    run = str(process_on_its_day(world).plan(world.table, save=True).plan.run)
    process_on_its_day(world).tag_add(world.table, "kept-after-all", world.snapshots["s3"])
    world.writer.change(lambda document: document["properties"].update({"firnline.keep.within": "20d"}))
    carried = process_on_its_day(world).commit(run)
    assert carried.expired == (
        str(world.snapshots["s1"]),
        str(world.snapshots["s4"]),
    )
    world.clock.advance(25 * HOUR_MS)
    process_on_its_day(world).purge(run)
    world.check()


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/Los_Angeles", "Asia/Kathmandu"])
def test_loss_20_time_zones(world: World, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    """A cut-off meant another instant on another machine (openhouse#517): UTC, or a zone that is written down."""
    options: dict[str, Any] = {"keep": {"daily": "10", "within": "14d"}, "now": world.clock()}
    here = process_on_its_day(world).plan(world.table, **options).to_json()
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        there = process_on_its_day(world).plan(world.table, **options).to_json()
        with pytest.raises(BadTimestamp, match="without a zone"):
            process_on_its_day(world).plan(world.table, older_than="2026-08-22T09:00:00")
        assert parse_instant("2026-08-22T09:00:00Z") == 1_787_389_200_000
    finally:
        monkeypatch.undo()
        time.tzset()
    assert here == there


# ---------------------------------------------------------------- 14, 15, 19: fail closed


def test_loss_14_folders_stay(world: World) -> None:
    """An empty listing, and a partition's folder was removed (paimon#7920): folders are never removed here."""
    folders = {path for path in world.folder.rglob("*") if path.is_dir()}
    expire_and_purge(world)
    assert folders <= {path for path in world.folder.rglob("*") if path.is_dir()}


@pytest.mark.parametrize("what", ["/runs/", "/victims", "/walked", "/outcomes", "/events"])
def test_loss_14_listing_fails(world: World, what: str) -> None:
    """A listing that failed is no empty listing: the purge stops before anything is deleted."""
    run = process_on_its_day(world).expire(world.table)
    assert isinstance(run, RunStatus)
    world.clock.advance(25 * HOUR_MS)
    files = world.files()

    class NoListing:
        def pass_on(self, request: PortRequest[Answer]) -> Answer:
            failing = request.verb == "list" and what in request.key
            return request.silence() if failing else request.send()

    with pytest.raises(StoreError):
        process_on_its_day(world, NoListing()).purge(run.id)
    assert world.files() == files


def broken(world: World, name: str, how: str, kind: str) -> None:
    """Damages a list or manifest of a snapshot."""
    truth = world.writer.ledger.truths[world.snapshots[name]]
    path = next(local(each) for each in sorted(truth.files) if each.endswith(kind))
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes({"cut short": path.read_bytes()[:-20], "not avro": b"{}", "empty": b""}[how])


@pytest.mark.parametrize("kind", ["list.avro", "manifest.avro"])
@pytest.mark.parametrize("how", ["missing", "cut short", "not avro", "empty"])
@pytest.mark.parametrize("name", ["s2", "s6", "s3"])
def test_loss_15_unreadable_root(world: World, name: str, how: str, kind: str) -> None:
    """A tag that could not be read protected nothing (paimon#5237): s2 is a tag's, s6 a branch's, s3 is expired."""
    broken(world, name, how, kind)
    place, files = world.writer.place(), world.files()
    with pytest.raises(UnreadableMetadata):
        process_on_its_day(world).expire(world.table, grace="0s")
    assert (world.writer.place(), world.files()) == (place, files)


@pytest.mark.parametrize("how", ["missing", "not avro"])
def test_loss_15_root_unreadable_at_purge(world: World, how: str) -> None:
    """The same when the root appeared after the plan: what it needs is unknown, so nothing goes."""
    run = process_on_its_day(world).expire(world.table)
    assert isinstance(run, RunStatus)
    world.snapshots["new"] = world.writer.append()
    broken(world, "new", how, "list.avro")
    world.clock.advance(25 * HOUR_MS)
    files = world.files()
    with pytest.raises(UnreadableMetadata):
        process_on_its_day(world).purge(run.id)
    assert world.files() == files


STRANGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a newer format": lambda document: document.update({"format-version": 4}),
    "keys": lambda document: document.update({"encryption-keys": [{"key-id": "1"}]}),
    "an encrypted snapshot": lambda document: document["snapshots"][-1].update({"key-id": "1"}),
    "an encrypted table": lambda document: document["properties"].update({"encryption.key-id": "k"}),
    "a hold that nobody can read": lambda document: document["properties"].update({"firnline.hold.x": "?"}),
    "a ref of a new kind": lambda document: document["refs"]["release"].update({"type": "bookmark"}),
}


STEPS = [
    (when, what)
    for when in ("plan", "commit", "purge", "undo")
    for what in STRANGE
    if (when, what) != ("undo", "a hold that nobody can read")
]
"""An undo only puts back: whatever the hold protects, it is there afterwards (`test_damaged_holds.py`)."""


@pytest.mark.parametrize(("when", "what"), STEPS)
def test_loss_19_unknown_feature(world: World, what: str, when: str) -> None:
    """An old client collected files of features it did not know (delta#2630): also where they come in later."""
    process, steps = process_on_its_day(world), dict[str, str]()
    if when != "plan":
        steps["run"] = str(process.plan(world.table, save=True).plan.run)
    if when in ("purge", "undo"):
        process.commit(steps["run"])
        world.clock.advance(25 * HOUR_MS)
    world.writer.change(STRANGE[what])
    place, files = world.writer.place(), world.files()
    act = process.expire if when == "plan" else getattr(process, when)
    with pytest.raises(RefusedForSafety):
        act(steps.get("run", world.table))
    assert (world.writer.place(), world.files()) == (place, files)


def test_loss_19_unknown_content(quick_folder: Path) -> None:
    """A manifest lists a kind of file that this version does not know: nobody can say what keeps it alive."""
    small = SmallTable(QuickFiles(), str(quick_folder / "small"))
    small.append(1)
    small.register([Item(f"{small.location}/data/new-kind", 10, 3)])  # type: ignore[arg-type]
    small.append(1)
    small.publish()
    with pytest.raises(UnsupportedFormat, match="content 3"):
        Lake(places_of(Section(), engine="local")).plan(small.location)


# ---------------------------------------------------------------- 16, 18, 21: commits and plans


class Around:
    """Commits as they are; a subclass does something else when one is sent."""

    def __init__(self, commits: Commit) -> None:
        self._commits = commits

    def prepare(self, table: TableName, step: Step) -> Attempt:
        return self._commits.prepare(table, step)

    def commit(self, attempt: Attempt) -> SwapOutcome:
        return self._commits.commit(attempt)

    def landed(self, proof: Mapping[str, Any], now: Version, still: Still = always) -> bool:
        return self._commits.landed(proof, now, still)

    def fence(self, proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
        return self._commits.fence(proofs, now)


class Hushed(Around):
    """A catalog whose answer to a commit never comes; the commit lands or it does not."""

    def __init__(self, commits: Commit, lands: bool) -> None:
        super().__init__(commits)
        self._lands = lands

    def commit(self, attempt: Attempt) -> SwapOutcome:
        if self._lands:
            self._commits.commit(attempt)
        return SwapOutcome.UNKNOWN


class Dropping(Around):
    """A server that builds the commit on what it has and loses a tag on the way, without a word."""

    def __init__(self, commits: Commit, lost: str) -> None:
        super().__init__(commits)
        self._lost = lost

    def commit(self, attempt: Attempt) -> SwapOutcome:
        said = json.loads(attempt.step.data)
        said["refs"].pop(self._lost, None)
        dropped = replace(attempt.step, data=json.dumps(said).encode())
        return self._commits.commit(replace(attempt, step=dropped))


def with_commits(process: Process, wrap: Callable[[Commit], Commit]) -> Process:
    """Returns the process with its commits sent through something else."""
    plain = process.places.place

    def place(table: str) -> TablePlace:
        found = plain(table)
        commits = found.source.open_commits
        return replace(found, source=replace(found.source, open_commits=lambda: wrap(commits())))

    vars(process.places)["place"] = place
    return process


@pytest.mark.parametrize("lands", [True, False])
def test_loss_16_unknown_outcome(world: World, monkeypatch: pytest.MonkeyPatch, lands: bool) -> None:
    """The commit's outcome was unknown, the client cleaned up what had been committed (iceberg#12818, #3733)."""
    monkeypatch.setattr("firnline.ops.runs.change.time.sleep", lambda _: None)
    before = set(world.rows())
    files = world.files()
    process = with_commits(process_on_its_day(world), lambda commits: Hushed(commits, lands))
    with pytest.raises(OutcomeUnknown) as unknown:
        process.expire(world.table, grace="0s")
    assert unknown.value.exit_code == 13
    assert files <= world.files()
    (run,) = world.runs()
    assert process_on_its_day(world).run(run).state == "committing"
    world.check()
    assert (set(world.rows()) == before) is not lands
    with pytest.raises(LeaseHeld, match="without an answer"):
        process_on_its_day(world).advance(run)
    world.wait_for_lease()
    settled = process_on_its_day(world).advance(run)
    assert settled.state == "done"
    assert len(settled.run.attempts) == (1 if lands else 2)
    world.check()


def test_loss_16_unknown_outcome_that_the_log_forgot(quick_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It landed, and a busy table's short log forgot it before anybody looked: the run still knows what it did."""
    monkeypatch.setattr("firnline.ops.runs.change.time.sleep", lambda _: None)
    world = World.make(quick_folder / "world")

    class Forgetful(Hushed):
        def commit(self, attempt: Attempt) -> SwapOutcome:
            outcome = self._commits.commit(attempt)
            if outcome is SwapOutcome.DONE:
                world.writer.append()
                world.writer.change(lambda document: document.update({"metadata-log": []}))
                return SwapOutcome.UNKNOWN
            return outcome

    process = with_commits(process_on_its_day(world), lambda commits: Forgetful(commits, lands=True))
    run = process.expire(world.table)
    assert isinstance(run, RunStatus)
    assert run.state == "committed"
    assert len(run.expired) == 5
    process_on_its_day(world).undo(run.id)
    assert set(world.snapshots.values()) < set(world.rows())
    world.check()


class DiesCommitting:
    """The process is gone right after its commit landed, before it could say so anywhere."""

    dead = False

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if self.dead:
            raise Died
        answer = request.send()
        self.dead = request.verb == "commit"
        if self.dead:
            raise Died
        return answer


def test_loss_18_pending_plans_are_roots(empty: World) -> None:
    """Files that a pending plan was to use were cleaned (hudi#19290): an unfinished run may still bring them back."""
    writer = empty.writer
    old, middle, _ = days_of(empty, lambda: writer.append(2), writer.append, writer.compact)
    cut = empty.clock() - 25 * DAY_MS
    first = str(process_on_its_day(empty).plan(empty.table, older_than=cut, save=True).plan.run)
    with pytest.raises(Died):
        process_on_its_day(empty, DiesCommitting()).commit(first)
    assert old not in empty.rows()
    assert process_on_its_day(empty).run(first).state == "committing"
    empty.wait_for_lease()
    second = process_on_its_day(empty).expire(empty.table, grace="0s")
    assert isinstance(second, RunStatus)
    assert middle not in empty.rows()
    assert second.waits is not None
    assert first in second.waits
    process_on_its_day(empty).undo(first)
    process_on_its_day(empty).undo(second.id)
    assert {old, middle} < set(empty.rows())
    empty.check()


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_loss_21_ref_between_load_and_commit(world: World, kind: str) -> None:
    """A tag made between load and commit was lost with its files: no requirement named it (read in Iceberg's code)."""
    fault = JustBefore("commit", getattr(world.actions, kind))
    run = process_on_its_day(world, fault).expire(world.table, grace="0s")
    assert isinstance(run, RunStatus)
    (name,) = world.actions.refs
    assert world.writer.document()["refs"][name]["snapshot-id"] == world.snapshots["s1"]
    assert world.snapshots["s1"] in world.rows()
    assert str(world.snapshots["s1"]) not in run.expired
    world.check()


def test_loss_21_a_server_that_loses_a_ref(world: World) -> None:
    """The server itself dropped the tag: it is noticed, and the run is never purged, not by a later call either."""
    process = with_commits(process_on_its_day(world), lambda commits: Dropping(commits, "release"))
    files = world.files()
    with pytest.raises(RefusedForSafety, match="release") as lost:
        process.expire(world.table, grace="0s")
    assert lost.value.exit_code == 14
    (run,) = world.runs()
    world.clock.advance(48 * HOUR_MS)
    for act in (Process.purge, Process.advance):
        with pytest.raises(RefusedForSafety, match="release"):
            act(process_on_its_day(world), run)
    assert files <= world.files()
    process_on_its_day(world).undo(run)
    assert set(world.rows()) == set(world.snapshots.values())


# ---------------------------------------------------------------- which are here

COVERED = {
    1: "missing parent",
    2: "middle snapshot",
    3: "cherry-picked data",
    4: "re-added path",
    6: "spellings of one path",
    7: "Puffin and statistics",
    8: "equality deletes, delete manifests",
    12: "no compare-and-swap",
    13: "two clocks",
    14: "failed listing, folders",
    15: "unreadable roots",
    16: "unknown outcome",
    17: "boundaries",
    18: "pending plans",
    19: "unknown features",
    20: "stale decisions, time zones",
    21: "ref lost in a commit",
}


def test_the_list_of_covered_losses_is_true() -> None:
    here = {int(name.split("_")[2]) for name in globals() if name.startswith("test_loss_")}
    assert here == set(COVERED)
