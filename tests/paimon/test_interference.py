"""Somebody changes the table while a run is half done, or between its end and its undo: nothing of anybody is lost."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from firnline.app.places import now_ms
from firnline.errors import CollectionForbidden, FirnlineError, LeaseHeld, RefusedForSafety
from firnline.formats.paimon.committing import steps
from firnline.model.files import FileKind
from firnline.model.holds import Hold
from firnline.model.times import HOUR_MS
from firnline.ops.marks.holds import add_hold
from firnline.ops.reachability.live_roots import live_roots
from firnline.testing.dated import date
from firnline.testing.faults import CHANGES, Answer, BothFaults, CountingFault, Died, Dying, Fault, PortRequest
from harness.paimon.expiry import Retention
from harness.paimon.expiry import expire as java_expires
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .small import Copy, row, seen_by_java

Act = Callable[[Copy, Fault | None], object]


def expire(copy: Copy, fault: Fault | None) -> None:
    copy.expire(fault, grace="1m")


@dataclass
class Before:
    """Somebody acts just before the first request of a verb for an object whose name ends so."""

    verb: str
    ending: str
    action: Callable[[], object]
    acted: bool = False

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if not self.acted and request.verb == self.verb and request.key.endswith(self.ending):
            self.acted = True
            self.action()
        return request.send()


@dataclass
class OfKey:
    """A fault that only sees requests for objects whose name ends so."""

    fault: Fault
    ending: str

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        return self.fault.pass_on(request) if request.key.endswith(self.ending) else request.send()


@dataclass
class OnSnapshots:
    """A fault that only sees requests for snapshots of the main branch."""

    fault: Fault

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        return self.fault.pass_on(request) if "/t/snapshot/snapshot-" in request.key else request.send()


@dataclass
class After:
    """Looks at something just after each request of a verb for an object whose name ends so."""

    verb: str
    ending: str
    look: Callable[[], object]

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        answer = request.send()
        if request.verb == self.verb and request.key.endswith(self.ending):
            self.look()
        return answer


@dataclass
class Watching:
    """Looks at something just before each snapshot of the main branch goes."""

    look: Callable[[], tuple[int, int]]
    seen: list[tuple[int, int]] = field(default_factory=list)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if request.verb == "delete" and "/t/snapshot/snapshot-" in request.key:
            self.seen.append(self.look())
        return request.send()


def snapshots(copy: Copy) -> set[str]:
    return {path.name for path in (copy.folder / "t/snapshot").glob("snapshot-*")}


def trace(made: Path, act: Act) -> list[tuple[str, str]]:
    copy, counting = Copy.of(made, "counted"), CountingFault()
    act(copy, counting)
    copy.end()
    return counting.trace


def cut_after(copy: Copy, made: Path, act: Act, ending: str) -> None:
    """The process dies just after it wrote or removed the first object whose name ends so."""
    effects = [key for verb, key in trace(made, act) if verb in CHANGES]
    at = next(place for place, key in enumerate(effects, 1) if key.endswith(ending))
    with suppress(Died, FirnlineError):
        act(copy, Dying(at, when="after"))
    copy.wait_for_lease()


# ---------------------------------------------------------------- holds


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ending", [".begun", "/snapshot-2"])
def test_a_hold_that_came_before_a_commit_was_carried_on_stays(made: Path, copy: Copy, ending: str) -> None:
    """The commit wrote the note as it had been before: the hold was gone, and the purge went on."""
    cut_after(copy, made, expire, ending)
    add_hold(copy.process().places.table_context(copy.table), Hold("all", "somebody", "a test", None))
    with pytest.raises(CollectionForbidden, match="is held as a whole"):
        copy.process().resume(copy.table)
    note = json.loads((copy.folder / "t/_firnline/properties.json").read_text())
    assert "firnline.hold.all" in note
    assert snapshots(copy) == {f"snapshot-{number}" for number in range(1, 8)}
    assert not copy.missing()


# ---------------------------------------------------------------- rollbacks


@pytest.mark.parametrize("target", [3, 4, 5])
def test_what_a_rollback_took_away_stays_away(both: Paimon, copy: Copy, target: int) -> None:
    """The commit had put back all that it was to take: what somebody had rolled back was the newest snapshot again."""
    table = JavaTable(both.java, copy.folder / "t")
    acting = Before("delete", "snapshot-3", lambda: table.rollback(MAIN, target))
    copy.expire(acting, sole_writer=False)
    assert acting.acted
    assert max(snapshots(copy)) == f"snapshot-{target}"
    assert not copy.missing()
    assert copy.process().check(copy.table).sound


def _back_to_a_tag(table: JavaTable) -> None:
    table.rollback(MAIN, "two")


def _fast_forward(table: JavaTable) -> None:
    table.fast_forward("side")


def _back_and_on(table: JavaTable) -> None:
    table.rollback(MAIN, "two")
    table.write(MAIN, [row(8, "eight")])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", [2, 3, 4, 5])
@pytest.mark.parametrize("act", [_back_to_a_tag, _fast_forward, _back_and_on])
def test_what_somebody_made_the_newest_stays_the_newest(
    both: Paimon, copy: Copy, act: Callable[[JavaTable], None], number: int
) -> None:
    """Snapshots that the commit had taken before came back above it, and were what everybody read."""
    table, made_newest = JavaTable(both.java, copy.folder / "t"), list[str]()

    def action() -> None:
        act(table)
        made_newest.append(newest(copy))

    copy.expire(Before("delete", f"/snapshot-{number}", action), sole_writer=False)
    assert [newest(copy)] == made_newest
    assert copy.process().check(copy.table).sound


def newest(copy: Copy) -> str:
    path = max((copy.folder / "t/snapshot").glob("snapshot-*"), key=lambda each: int(each.name.rpartition("-")[2]))
    return path.read_text()


def test_the_hint_follows_the_range_and_never_runs_ahead(
    both: Paimon, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paimon's rollback leaves what lies between its target and the hint; pypaimon looks only some way beyond it."""
    monkeypatch.setattr(steps, "_STRIDE", 2)
    hint = copy.folder / "t/snapshot/EARLIEST"
    seen = Watching(lambda: (int(hint.read_text()), min(int(each.rpartition("-")[2]) for each in snapshots(copy))))
    copy.expire(seen)
    assert [first for _, first in seen.seen] == [1, 2, 3, 4, 5]
    assert all(0 <= first - said <= 2 for said, first in seen.seen)
    assert hint.read_text() == "6"


@pytest.mark.parametrize("hinted", [True, False])
def test_a_commit_that_is_given_up_leaves_no_hint_of_its_own(
    both: Paimon, copy: Copy, monkeypatch: pytest.MonkeyPatch, hinted: bool
) -> None:
    monkeypatch.setattr(steps, "_STRIDE", 2)
    hint, table = copy.folder / "t/snapshot/EARLIEST", JavaTable(both.java, copy.folder / "t")
    if not hinted:
        hint.unlink()
    acting = Before("delete", "snapshot-4", lambda: table.rollback(MAIN, 5))
    stopped = Before("put_if_absent", ".given-up", lambda: found.append(hint.read_text() if hint.exists() else None))
    found: list[str | None] = []
    copy.expire(BothFaults(acting, stopped), sole_writer=False)
    assert found == ["1" if hinted else None]


def test_a_commit_that_is_given_up_leaves_the_hint_at_the_first_snapshot(both: Paimon, copy: Copy) -> None:
    """It had put back what the hint said before. Once that number was given again, Java took it for the first one."""
    copy.expire()
    table = JavaTable(both.java, copy.folder / "t")
    for number in (8, 9):
        table.write(MAIN, [row(number, "more")])
    acting = Before("delete", "/snapshot-7", lambda: table.rollback(MAIN, "two"))
    copy.expire(acting, sole_writer=False)
    assert acting.acted
    for number in range(11, 16):
        table.write(MAIN, [row(number, "again")])
    assert seen_by_java(both, copy)[1] == min(int(each.rpartition("-")[2]) for each in snapshots(copy))


def test_a_rollback_just_before_the_hint_is_written_is_seen(both: Paimon, copy: Copy) -> None:
    """The hint named what the commit left, and the rollback had taken that away: Java believed it when the number was
    given again, and took it for the first.
    """
    table = JavaTable(both.java, copy.folder / "t")
    acting = Before("put", "EARLIEST", lambda: table.rollback(MAIN, "two"))
    copy.expire(acting, sole_writer=False)
    assert acting.acted
    for number in range(11, 16):
        table.write(MAIN, [row(number, "again")])
    assert seen_by_java(both, copy)[1] == min(int(each.rpartition("-")[2]) for each in snapshots(copy))


@pytest.mark.parametrize("stride", [2, 100])
def test_the_hint_does_not_run_ahead_of_what_comes_back(
    both: Paimon, copy: Copy, monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    """Snapshots came back below what the hint said; a rollback to one of them left those between it and the hint."""
    monkeypatch.setattr(steps, "_STRIDE", stride)
    run = str(copy.expire(grace="1m").run.id)
    table = JavaTable(both.java, copy.folder / "t")
    acting = Before("put_if_absent", "/snapshot-2", lambda: table.rollback(MAIN, 3))
    with suppress(RefusedForSafety):
        copy.process(acting).undo(run)
    assert acting.acted
    assert max(snapshots(copy)) == "snapshot-3"
    assert copy.process().check(copy.table).sound


@dataclass
class AtFirst:
    """Somebody acts just before the first request of a verb for a snapshot of the main branch."""

    verb: str
    action: Callable[[], object]
    acted: bool = False

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if not self.acted and request.verb == self.verb and "/t/snapshot/snapshot-" in request.key:
            self.acted = True
            self.action()
        return request.send()


def test_a_rollback_that_goes_on_while_the_commit_is_given_up_is_not_turned_back(copy: Copy) -> None:
    """Java removes one snapshot after the other. Those that it removed after the look came back, above its target."""

    def remove(*numbers: int) -> None:
        for number in numbers:
            (copy.folder / f"t/snapshot/snapshot-{number}").unlink()

    began = Before("delete", "/snapshot-2", lambda: remove(7, 6))
    went_on = AtFirst("put_if_absent", lambda: remove(5, 4))
    copy.expire(BothFaults(began, went_on), sole_writer=False)
    assert began.acted
    assert went_on.acted
    assert max(snapshots(copy)) == "snapshot-3"


def test_a_rollback_that_ends_after_the_commit_loses_nothing(copy: Copy) -> None:
    """It had looked at snapshot 4 before that went, and removes all above it: then the branch has none."""
    before = {path: text for path, text in copy.picture().items() if "/snapshot/" not in path}
    ended = copy.expire(grace="1m")
    for number in (7, 6):
        (copy.folder / f"t/snapshot/snapshot-{number}").unlink()
    copy.clock.advance(61_000)
    with pytest.raises(RefusedForSafety, match="no snapshot on main any more"):
        copy.process().resume(copy.table)
    copy.process().undo(str(ended.run.id))
    assert snapshots(copy) == {f"snapshot-{number}" for number in range(1, 6)}
    assert {path: text for path, text in copy.picture().items() if "/snapshot/" not in path} == before
    assert not copy.missing()


def test_an_expiry_of_the_writers_in_the_middle_of_an_undo_leaves_no_gap(copy: Copy) -> None:
    run = str(copy.expire(grace="1m").run.id)
    acting = Before("put_if_absent", "snapshot-3", (copy.folder / "t/snapshot/snapshot-6").unlink)
    with pytest.raises(RefusedForSafety, match="between snapshot 5 and 7"):
        copy.process(acting).undo(run)
    assert acting.acted
    assert snapshots(copy) == {"snapshot-7"}
    assert not copy.missing()


def test_an_undo_that_is_carried_on_brings_back_nothing_that_writers_expired_meanwhile(
    both: Paimon, copy: Copy
) -> None:
    """It was cut after its first snapshot, which the writers then expired with its files. Carried on, it put the
    snapshot there again, and whoever read it before the undo looked at the files found them gone.
    """
    run, table = str(copy.expire(grace="1m").run.id), JavaTable(both.java, copy.folder / "t")
    left = snapshots(copy)
    with pytest.raises(Died):
        copy.process(OnSnapshots(Dying(1, when="after", verb="put_if_absent"))).undo(run)
    copy.wait_for_lease()
    (back,) = snapshots(copy) - left
    assert java_expires(both.java, table, Retention(least=1, most=len(left))) == 1
    seen: list[dict[str, set[str]]] = []
    with pytest.raises(RefusedForSafety):
        copy.process(After("put_if_absent", back, lambda: seen.append(copy.missing()))).undo(run)
    assert not any(seen), seen
    assert not copy.missing()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("cut", [True, False])
def test_a_run_whose_undo_is_refused_in_the_middle_goes_on_to_its_purge(both: Paimon, copy: Copy, cut: bool) -> None:
    """It had stayed in the middle for good, and no later run of the table could be purged."""
    run, table = str(copy.expire(grace="1m").run.id), JavaTable(both.java, copy.folder / "t")
    acting = Before("put_if_absent", "snapshot-4", lambda: table.fast_forward("side"))
    dying = Dying(1, when="after", verb="put_if_absent")
    with pytest.raises((Died, RefusedForSafety)):
        copy.process(BothFaults(acting, OfKey(dying, "snapshot-4")) if cut else acting).undo(run)
    copy.wait_for_lease()
    if cut:
        with pytest.raises(RefusedForSafety, match="is another one by now"):
            copy.process().undo(run)
    assert copy.process().run(run).state == "committed"
    copy.clock.advance(61_000)
    copy.process().resume(copy.table)
    assert copy.process().run(run).state == "done"
    assert not copy.missing()
    assert copy.process().check(copy.table).sound


def test_a_branch_that_is_dropped_while_it_comes_back_leaves_nothing_unreadable(both: Paimon, copy: Copy) -> None:
    before = copy.picture()
    run = str(copy.process().drop(copy.table, ["side"], grace="1m", blast_radius=1.0).run.id)
    table = JavaTable(both.java, copy.folder / "t")
    acting = Before("put_if_absent", "branch-side/snapshot/snapshot-2", lambda: table.drop_branch("side"))
    copy.process(acting).undo(run)
    assert acting.acted
    assert copy.picture() == before
    assert copy.process().check(copy.table).sound


def test_an_undo_does_not_undo_a_rollback(both: Paimon, copy: Copy) -> None:
    """Somebody went back to a tag that outlived its snapshot: what came after it would be the newest again."""
    run = str(copy.expire(grace="1m").run.id)
    JavaTable(both.java, copy.folder / "t").rollback(MAIN, "two")
    before = copy.picture()
    with pytest.raises(RefusedForSafety, match="the newest snapshot is 2 by now"):
        copy.process().undo(run)
    assert copy.picture() == before
    copy.clock.advance(61_000)
    copy.process().resume(copy.table)
    assert not copy.missing()
    assert copy.process().check(copy.table).sound


# ---------------------------------------------------------------- branches and tags


def test_an_undo_leaves_alone_what_belongs_to_a_branch_that_is_gone(copy: Copy) -> None:
    """A tag that came back into a branch without a schema made the whole table unreadable."""
    _shorten(copy)
    ended = copy.expire(grace="1m")
    assert ended.expired_refs == ("side:two",)
    shutil.rmtree(copy.folder / "t/branch/branch-side")
    undone = copy.process().undo(str(ended.run.id))
    assert undone.left_alone == ("side:two",)
    assert snapshots(copy) == {f"snapshot-{number}" for number in range(1, 8)}
    assert copy.process().check(copy.table).sound


def test_runs_that_depend_on_each_other_are_undone_the_last_one_first(copy: Copy) -> None:
    """The branch would come back without the tag: nothing would ever bring that one back."""
    _shorten(copy)
    before = copy.picture()
    first = copy.expire(grace="1m")
    second = copy.process().drop(copy.table, ["side"], grace="1m", blast_radius=1.0)
    with pytest.raises(RefusedForSafety, match="side:two cannot come back") as refused:
        copy.process().undo(str(first.run.id))
    assert str(second.run.id) in refused.value.hint
    for each in (second, first):
        copy.process().undo(str(each.run.id))
    assert copy.picture() == before


def _shorten(copy: Copy) -> None:
    """The time of the branch's tag is over."""
    path = copy.folder / "t/branch/branch-side/tag/tag-two"
    short = {"tagCreateTime": [2020, 1, 1, 1, 1, 1], "tagTimeRetained": 0.001}
    path.write_text(json.dumps({**json.loads(path.read_text()), **short}))
    date(path, now_ms() - HOUR_MS)  # the file's own time counts too


@pytest.mark.parametrize("earlier_stays", [True, False])
def test_a_snapshot_that_stays_below_the_range_never_shares_a_tag(copy: Copy, earlier_stays: bool) -> None:
    """Its number was given again, and a tag of firnline's holds the earlier one by the name that it would get."""
    third = copy.folder / "t/snapshot/snapshot-3"
    later = {**json.loads(third.read_text()), "timeMillis": 1_700_000_000_000}
    third.write_text(json.dumps(later))
    first = json.loads((copy.folder / "t/snapshot/snapshot-1").read_text())
    earlier = {**first, "id": 3, "timeMillis": 1_700_000_000_000 if earlier_stays else 1_600_000_000_000}
    (copy.folder / "t/tag/tag-firnline-snapshot-3").write_text(json.dumps(earlier))
    if earlier_stays:
        add_hold(copy.process().places.table_context(copy.table), Hold("old", "me", "a test", "3@firnline-snapshot-3"))
    copy.expire(retain_last=None, older_than=None, keep={"last": "1", "daily": "2"})
    tags = [json.loads(path.read_text()) for path in (copy.folder / "t/tag").glob("tag-firnline-*")]
    assert later in tags
    assert (earlier in tags) is earlier_stays
    assert not copy.missing()


def test_two_versions_of_one_number_are_walked_apart(copy: Copy) -> None:
    """One is a tag in the table, the other can come back: what the one takes away, the other may need."""
    sixth = json.loads((copy.folder / "t/snapshot/snapshot-6").read_text())
    (copy.folder / "t/tag/tag-again").write_text(json.dumps({**sixth, "id": 3}))
    copy.expire(grace="1m")
    work = copy.process().places.table_context(copy.table)
    state = work.source.load()
    lists = Counter(
        root.owner for root in live_roots(work, state, work.now()) if root.file.kind is FileKind.MANIFEST_LIST
    )
    assert state.refs["again"].snapshot == "3"
    assert max(lists.values()) == 2, "each has a base and a delta"


# ---------------------------------------------------------------- leases


def test_who_carries_on_a_commit_asks_for_the_lease_before_each_request(made: Path, copy: Copy) -> None:
    """One that was frozen here would take out again what somebody else has undone meanwhile."""
    cut_after(copy, made, expire, ".begun")
    acting = Before("delete", "snapshot-2", copy.wait_for_lease)
    with pytest.raises(LeaseHeld):
        copy.process(acting).resume(copy.table)
    assert acting.acted
    assert "snapshot-3" in snapshots(copy), "nothing more was sent"
    copy.wait_for_lease()
    copy.process().resume(copy.table)
    assert snapshots(copy) == {"snapshot-6", "snapshot-7"}
    assert not copy.missing()


def test_a_snapshot_that_came_meanwhile_is_no_obstacle(both: Paimon, made: Path, copy: Copy) -> None:
    cut_after(copy, made, expire, "/snapshot-2")
    JavaTable(both.java, copy.folder / "t").write(MAIN, [row(8, "eight")])
    copy.process().resume(copy.table)
    assert snapshots(copy) == {"snapshot-6", "snapshot-7", "snapshot-8"}
    assert not copy.missing()


def _another_schema(copy: Copy, path: str) -> None:
    """The branch has a schema that the main branch never had, and wrote this file with it."""
    side = copy.folder / "t/branch/branch-side"
    schema = {**json.loads((side / "schema/schema-0").read_text()), "id": 9}
    (side / "schema/schema-9").write_text(json.dumps(schema))
    (side / path).write_text(json.dumps({**json.loads((side / path).read_text()), "schemaId": 9}))


def test_a_hold_keeps_what_went_with_a_branch_of_schemas_of_its_own(copy: Copy) -> None:
    """Such a snapshot is walked as if the main branch had it: every run had been refused for the schema it lacks."""
    _another_schema(copy, "snapshot/snapshot-3")
    needs = next(each for root, each in copy.reader().reachable().items() if (root.branch, root.name) == ("side", "3"))
    held = {Path(path) for path in needs.data if "/data-" in path}
    assert len(held) > 1
    copy.process().drop(copy.table, ["side"], grace="1m", blast_radius=1.0)
    add_hold(copy.process().places.table_context(copy.table), Hold("late", "somebody", "a test", "side:3"))
    copy.clock.advance(61_000)
    copy.process().resume(copy.table)
    assert all(path.exists() for path in held)


def test_an_undo_leaves_alone_what_has_no_schema_in_a_branch_that_was_made_again(both: Paimon, copy: Copy) -> None:
    """A tag came back into the new branch, and then nobody could read the table."""
    _another_schema(copy, "tag/tag-two")
    _shorten(copy)
    ended = copy.expire(grace="1m")
    table = JavaTable(both.java, copy.folder / "t")
    table.drop_branch("side")
    table.create_branch("side", None)
    undone = copy.process().undo(str(ended.run.id))
    assert undone.left_alone == ("side:two",)
    assert copy.process().check(copy.table).sound
