"""A lake-wide expire: planned as a whole, asked once; each table ends as if it were alone."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from firnline.app.lake_wide.runs import Carried
from firnline.app.places import now_ms
from firnline.app.runs import Runs
from firnline.cli.main import run
from firnline.errors import (
    BlastRadiusExceeded,
    CollectionForbidden,
    FirnlineError,
    Interrupted,
    LeaseHeld,
    NoSuchTable,
    RefusedForSafety,
    UnreadableMetadata,
)
from firnline.journal.parts import seal
from firnline.lake import Lake
from firnline.model.times import DAY_MS
from firnline.ops.runs import advance
from firnline.ops.runs.leased import LeasedRun
from firnline.ops.runs.status import RunStatus
from firnline.ops.table.context import TableContext
from firnline.plans.answers import TableAnswer
from firnline.plans.kinds import EXPIRY
from firnline.plans.plan import Plan
from firnline.ports.progress import Silent
from firnline.testing.dated import date
from tests.neighbours.lakes import RealLake

NAMES = "abcd"
MADE = 3
"""Snapshots of each table: an overwrite of what is there makes two of them."""
FULL = bool(os.environ.get("FIRNLINE_FULL"))
OTHERS = "abd"
ALL = [f"lake.db.{name}" for name in NAMES]
Answers = dict[str, TableAnswer[Carried[Plan]]]


def asked(**more: Any) -> dict[str, Any]:
    return {"older_than": now_ms(), "retain_last": 1, "blast_radius": 1.0, "grace": "0s", **more}


@pytest.fixture
def four(lake: RealLake) -> RealLake:
    """Tables of three snapshots; the newest reads one row."""
    for name in NAMES:
        lake.create(name)
        lake.append(name, 1)
        lake.overwrite(name, 2)
    return lake


def expired(lake: Lake, *texts: str, **more: Any) -> Answers:
    return {each.table: each for each in lake.several(texts or None).expire(**asked(**more))}


def status(answer: TableAnswer[Carried[Plan]]) -> RunStatus:
    assert answer.problem is None, answer
    assert answer.value is not None
    assert answer.value.status is not None
    return answer.value.status


def is_whole(four: RealLake, name: str) -> bool:
    """Tells whether the table has all it should: its rows, and one snapshot or all."""
    return four.read_all(name)[-1] == [2]


def snapshots(four: RealLake, name: str) -> int:
    return len(four.table(name).snapshots())


def test_every_table_is_expired_and_purged(four: RealLake) -> None:
    found = expired(four.firnline())
    assert sorted(found) == ALL
    assert all(status(each).state == "done" for each in found.values())
    assert all(status(each).outcomes["deleted"].files for each in found.values())
    assert [snapshots(four, name) for name in NAMES] == [1] * len(NAMES)
    assert all(is_whole(four, name) for name in NAMES)


def test_each_run_is_the_one_that_its_table_gets_alone(four: RealLake) -> None:
    together = expired(four.firnline(), "lake.db.a")["lake.db.a"]
    alone = four.firnline().expire("lake.db.b", **asked())
    assert isinstance(alone, RunStatus)
    assert len(status(together).expired) == len(alone.expired)
    one, other = status(together).outcomes["deleted"], alone.outcomes["deleted"]
    assert one.files == other.files


def test_the_plans_that_are_shown_are_carried_out(four: RealLake) -> None:
    shown: list[TableAnswer[Plan]] = []
    found = {each.table: each for each in four.firnline().several().expire(confirm=shown.extend, **asked())}
    plans = {each.table: each.value for each in shown}
    assert {name: str(plan.run) for name, plan in plans.items() if plan} == {
        name: status(each).id for name, each in found.items()
    }


def test_a_no_changes_nothing_and_leaves_no_run_to_carry_on(four: RealLake) -> None:
    def no(plans: Sequence[TableAnswer[Plan]]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        four.firnline().several().expire(confirm=no, **asked())
    assert [snapshots(four, name) for name in NAMES] == [MADE] * len(NAMES)
    assert {each.state for name in ALL for each in four.firnline().runs(name)} == {"cancelled"}


def test_a_plan_that_nobody_approved_waits(four: RealLake) -> None:
    lake = four.firnline()
    plans = list(lake.several().plan(save=True, **asked()))
    assert all(each.value is not None and each.value.run for each in plans)
    found = four.firnline().several().resume()
    assert {str(each.state) for answer in found for each in answer.value or ()} == {"planned"}
    assert [snapshots(four, name) for name in NAMES] == [MADE] * len(NAMES)


def hold(four: RealLake) -> None:
    four.firnline().hold("lake.db.c", "audit", why="audit")


def drop(four: RealLake) -> None:
    four.catalog.drop_table("db.c")


def move_on(four: RealLake) -> None:
    four.append("c", 7)


def damage(four: RealLake) -> None:
    snapshot = four.table("c").snapshots()[-1]
    Path(snapshot.manifest_list.removeprefix("file://")).write_bytes(b"Obj\x01 cut")


def rename(four: RealLake) -> None:
    four.catalog.rename_table("db.c", "db.elsewhere")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("meanwhile", [hold, drop, move_on, rename])
def test_what_becomes_of_one_table_after_the_question_stops_no_other(
    four: RealLake, meanwhile: Callable[[RealLake], None]
) -> None:
    found = {
        each.table: each for each in four.firnline().several().expire(confirm=lambda plans: meanwhile(four), **asked())
    }
    for name in OTHERS:
        assert status(found[f"lake.db.{name}"]).state == "done"
        assert snapshots(four, name) == 1
        assert is_whole(four, name)
    third = found["lake.db.c"]
    if meanwhile is move_on:
        assert status(third).state == "done"
        assert four.read("c") == [2, 7]
    else:
        assert isinstance(third.problem, FirnlineError)


def test_a_table_that_is_refused_is_told_and_not_touched(four: RealLake) -> None:
    hold(four)
    found = expired(four.firnline(), blast_radius=0.01)
    assert isinstance(found["lake.db.c"].problem, CollectionForbidden)
    assert all(isinstance(found[f"lake.db.{name}"].problem, BlastRadiusExceeded) for name in OTHERS)
    assert [snapshots(four, name) for name in NAMES] == [MADE] * len(NAMES)
    assert all(not four.firnline().runs(name) for name in ALL)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shares", [True, False])
def test_a_table_that_breaks_meanwhile_stops_others_only_as_it_would_stop_each_alone(
    four: RealLake, shares: bool
) -> None:
    """What it needs cannot be read, so nothing that it may share can go; unless the operator says that it does not."""
    if not shares:
        four.policy = "catalogs: {lake: {namespaces: {db: {tables: {c: {sharing: none}}}}}}"
    found = {
        each.table: each for each in four.firnline().several().expire(confirm=lambda plans: damage(four), **asked())
    }
    for name in OTHERS:
        other = found[f"lake.db.{name}"]
        assert isinstance(other.problem, RefusedForSafety) if shares else status(other).state == "done"
        assert is_whole(four, name)
    with nullcontext() if not shares else pytest.raises(RefusedForSafety):
        four.firnline().resume("lake.db.a")


class Cut(BaseException):
    """The end of a process."""


class Dying:
    """Lets so many calls of a method pass, of all threads together; then the process is dead."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def called(*said: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise Cut
            return act(*said, **named)

        return called


@pytest.mark.sampled(1)
@pytest.mark.parametrize("calls", range(0, 80, 1 if FULL else 9))
def test_a_process_that_dies_at_any_write_leaves_the_whole_to_resume(
    four: RealLake, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every write of records goes through one method; the deaths lie in the planning, the approvals and the runs."""
    from firnline.stores.objects import ObjectStores

    dying = Dying(calls)
    with monkeypatch.context() as patched:
        patched.setattr(ObjectStores, "put_if_absent", dying(ObjectStores.put_if_absent))
        with suppress(Cut):
            four.firnline().several(at_once=1).expire(**asked())
    after = four.firnline().several().resume(break_lease=True)
    assert [each.problem for each in after] == [None] * len(NAMES)
    states = {name: [str(each.state) for each in four.firnline().runs(name)] for name in ALL}
    approved = [name for name, each in states.items() if each and each[-1] == "done"]
    assert all(is_whole(four, name) for name in NAMES)
    assert all(snapshots(four, name.rpartition(".")[2]) == (1 if name in approved else MADE) for name in ALL)
    found = expired(four.firnline(), break_lease=True)
    assert all(each.problem is None for each in found.values())
    assert [snapshots(four, name) for name in NAMES] == [1] * len(NAMES)
    assert all(is_whole(four, name) for name in NAMES)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("meanwhile", [hold, drop, move_on, rename])
@pytest.mark.parametrize("calls", range(1, 120, 1 if FULL else 13))
def test_a_process_that_dies_while_tables_are_side_by_side_and_one_changes_leaves_the_others_to_resume(
    four: RealLake, calls: int, meanwhile: Callable[[RealLake], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Death comes before a record, a commit or a delete, of whichever table; then a person does something to one."""
    from firnline.catalogs.sql import SqlCatalog
    from firnline.stores import delete
    from firnline.stores.objects import ObjectStores

    dying = Dying(calls)
    with monkeypatch.context() as patched:
        for where, effect in ((ObjectStores, "put_if_absent"), (SqlCatalog, "swap"), (delete, "_unlinked")):
            patched.setattr(where, effect, dying(getattr(where, effect)))
        with suppress(Cut):
            four.firnline().several(at_once=len(NAMES)).expire(**asked())
    meanwhile(four)
    for answers in (
        four.firnline().several().resume(break_lease=True),
        expired(four.firnline(), break_lease=True).values(),
    ):
        beside = [each for each in answers if each.table in {f"lake.db.{name}" for name in OTHERS}]
        assert [each.problem for each in beside] == [None] * len(beside)
        assert all(is_whole(four, name) for name in OTHERS)
    assert [snapshots(four, name) for name in OTHERS] == [1] * len(OTHERS)
    if meanwhile is not drop:
        assert four.read("elsewhere" if meanwhile is rename else "c") == ([2, 7] if meanwhile is move_on else [2])


def test_a_stop_is_told_of_each_table_that_it_did_not_reach_and_resume_does_the_rest(four: RealLake) -> None:
    asked_to_stop: list[bool] = []
    lake = four.firnline()
    lake.places.interrupted = lambda: bool(asked_to_stop)
    advanced = Runs.advance

    def stop_after_one(runs: Runs, *said: Any) -> RunStatus:
        asked_to_stop.append(True)
        return advanced(runs, *said)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Runs, "advance", stop_after_one)
        found = lake.several(at_once=1).expire(**asked())
    stopped = [each for each in found if isinstance(each.problem, Interrupted)]
    assert len(stopped) >= len(NAMES) - 1
    assert all(each.problem is not None and "resume" in (each.problem.hint or "") for each in stopped)
    assert all(each.problem is None for each in four.firnline().several().resume())
    assert [snapshots(four, name) for name in NAMES] == [1] * len(NAMES)


@pytest.mark.parametrize("how", [Interrupted, KeyError])
def test_a_table_that_stopped_after_its_commit_says_what_was_expired(
    four: RealLake, how: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the table's snapshots two are gone: that its run was not carried out to its end must not hide it."""

    def stop(*said: Any) -> None:
        raise how("stopped")

    monkeypatch.setattr(advance, "purge_run", stop)
    found = expired(four.firnline())
    assert all(each.problem is not None for each in found.values())
    stands = [each.value.status for each in found.values() if each.value is not None]
    assert [(str(each.state), len(each.expired)) for each in stands if each is not None] == [
        ("committed", MADE - 1)
    ] * len(NAMES)


def test_a_run_that_another_process_called_off_is_not_approved(four: RealLake) -> None:
    def call_off(plans: Sequence[TableAnswer[Plan]]) -> None:
        (first, *_) = [each.value for each in plans if each.value is not None]
        four.firnline().undo(str(first.run))

    found = {each.table: each for each in four.firnline().several().expire(confirm=call_off, **asked())}
    assert found["lake.db.a"].problem is not None
    assert snapshots(four, "a") == MADE
    assert all(status(found[name]).state == "done" for name in ALL[1:])


def test_two_at_once_share_the_tables_between_them(four: RealLake) -> None:
    """The second begins while the first has planned: of each table one of them takes out what both had planned."""
    other: list[TableAnswer[Carried[Plan]]] = []

    def another(plans: Sequence[TableAnswer[Plan]]) -> None:
        other.extend(four.firnline().several().expire(**asked()))

    found = four.firnline().several().expire(confirm=another, **asked())
    assert all(status(each).state == "done" for each in other)
    for each in found:
        assert each.problem is None or isinstance(each.problem, RefusedForSafety | LeaseHeld | NoSuchTable), each
    assert [snapshots(four, name) for name in NAMES] == [1] * len(NAMES)
    assert all(is_whole(four, name) for name in NAMES)


def test_to_break_a_lease_takes_no_table_from_another_thread_of_the_same_command(
    four: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One table may be named twice, for example by two catalogs: then its two runs are carried on side by side."""
    lake = four.firnline()
    first, second = (str(lake.plan("lake.db.a", save=True, **asked()).plan.run) for _ in range(2))
    commit_run, met = advance.COMMITS[EXPIRY], list[BaseException | None]()

    def meanwhile(leased: LeasedRun) -> LeasedRun:
        if str(leased.run.id) == first:
            with ThreadPoolExecutor(1) as pool:
                met.append(pool.submit(lake.commit, second, break_lease=True).exception())
        return commit_run(leased)

    monkeypatch.setitem(advance.COMMITS, EXPIRY, meanwhile)
    assert lake.commit(first).state == "committed"
    assert isinstance(met[0], LeaseHeld)
    assert lake.commit(second, break_lease=True).state == "cancelled"


@pytest.fixture
def at_home(four: RealLake, monkeypatch: pytest.MonkeyPatch) -> RealLake:
    monkeypatch.chdir(four.folder)
    return four


WORDS = ["--retain-last", "1", "--blast-radius", "100%", "--grace", "0s"]


def words() -> list[str]:
    return [*WORDS, "--older-than", str(now_ms())]


def test_the_command_takes_all_and_tells_what_came_of_each(
    at_home: RealLake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["expire", "--all", "--yes", "--json", *words()]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [each["state"] for each in said["tables"]] == ["done"] * len(NAMES)
    assert said["sums"]["expired"] == len(NAMES) * (MADE - 1)
    assert said["sums"]["deleted"]["files"] == sum(each["outcomes"]["deleted"]["files"] for each in said["tables"])
    assert run(["expire", "lake.db.*", "--yes", *words()]) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_the_command_asks_before_it_plans_where_nobody_can_answer(at_home: RealLake) -> None:
    assert run(["expire", "--all", *words()]) == 2
    assert not list(at_home.folder.rglob("plan.json"))


def test_purge_and_resume_take_patterns_and_tell_trouble(at_home: RealLake, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["expire", "--all", "--yes", *[each for each in words() if each not in ("--grace", "0s")]]) == 0
    assert "grace ends " in capsys.readouterr().out
    assert run(["resume", "lake.db.[ab]", "lake.db.c"]) == 0
    assert capsys.readouterr().out.count("committed") == 3
    shutil.rmtree(Path(at_home.table("d").metadata_location.removeprefix("file://")).parent)
    assert run(["purge"]) != 0
    told = capsys.readouterr()
    assert told.out.count("committed") == 3
    assert "lake.db.d" in told.err
    assert run(["purge", "lake.db.a@20200101T000000Z-000000", "lake.db.b"]) == 2


def test_history_of_all_is_a_line_each(at_home: RealLake, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["history", "--all", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [(each["table"], each["snapshots"]["live"]) for each in said["tables"]] == [(name, MADE) for name in ALL]
    assert run(["history", "lake.db.a", "lake.db.b"]) == 0
    assert "2 tables" in capsys.readouterr().out
    assert run(["history", "--all", "--plot", "x.svg"]) == 2


def lonely(four: RealLake, name: str) -> Path:
    """A file in the table's folder that nothing names, of long ago."""
    file = Path(four.table(name).location().removeprefix("file://")) / "data" / "00000-0-left.parquet"
    file.write_bytes(b"left behind")
    date(file, now_ms() - 40 * DAY_MS)
    return file


def test_orphans_of_all_wait_for_a_yes(four: RealLake) -> None:
    files = [lonely(four, name) for name in "ac"]
    terms: dict[str, Any] = {"grace": "0s", "blast_radius": 1.0}
    shown = four.firnline().several().orphans(dry_run=True, **terms)
    assert sum(each.value.plan.victims.all.files for each in shown if each.value) == 2
    waiting = four.firnline().several().orphans(**terms)
    assert [each.value.status.state for each in waiting if each.value and each.value.status] == ["planned"] * 2
    assert all(file.exists() for file in files)
    carried = four.firnline().several().orphans(confirm=lambda plans: True, **terms)
    assert [each.value.status.state for each in carried if each.value and each.value.status] == ["done"] * 2
    assert not any(file.exists() for file in files)
    assert all(is_whole(four, name) for name in NAMES)


def test_the_command_searches_all_and_tells_what_it_found(
    at_home: RealLake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["orphans", "--all", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sums"]["tables"] == len(NAMES)
    assert run(["orphans", "lake.db.*"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in NAMES)
    assert "nothing was changed" in told
    assert run(["orphans", "--all", "--files", "x.csv"]) == 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("step", ["proposed", "approve", "advance"])
def test_an_error_of_no_known_kind_in_one_table_stops_no_other(
    four: RealLake, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    act = getattr(Runs, step)

    def broken(runs: Runs, of: Any, *said: Any, **options: Any) -> Any:
        named = of.source.name if isinstance(of, TableContext) else of
        if str(named).startswith("lake.db.c"):
            raise KeyError("no such thing")
        return act(runs, of, *said, **options)

    monkeypatch.setattr(Runs, step, broken)
    found = expired(four.firnline())
    assert all(status(found[f"lake.db.{name}"]).state == "done" for name in OTHERS)
    problem = found["lake.db.c"].problem
    assert problem is not None
    assert "KeyError" in problem.message
    assert (snapshots(four, "c"), is_whole(four, "c")) == (MADE, True)


class StoppedByHand(Silent):
    """Ctrl-C after so many tables, where the main thread waits for the next."""

    def step(self, what: str, done: int, total: int | None = None) -> None:
        if what == "tables" and done == 2:
            raise KeyboardInterrupt


def test_a_stop_while_tables_are_planned_leaves_no_plan_behind(four: RealLake) -> None:
    lake = four.firnline()
    lake.places.progress = StoppedByHand()
    with pytest.raises(KeyboardInterrupt):
        lake.several().expire(**asked())
    assert {each.state for name in ALL for each in four.firnline().runs(name)} == {"cancelled"}
    assert [snapshots(four, name) for name in NAMES] == [MADE] * len(NAMES)


def test_a_no_does_not_undo_what_another_process_committed(four: RealLake) -> None:
    def no(plans: Sequence[TableAnswer[Plan]]) -> None:
        (first, *_) = [each.value for each in plans if each.value is not None]
        four.firnline().commit(str(first.run))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        four.firnline().several().expire(confirm=no, **asked(grace="1d"))
    assert [each.state for each in four.firnline().runs("lake.db.a")] == ["committed"]
    assert [snapshots(four, name) for name in NAMES] == [1, MADE, MADE, MADE]


def test_a_stop_among_the_approvals_tells_which_runs_resume_does_not_go_on_with(four: RealLake) -> None:
    asked_to_stop: list[bool] = []
    lake = four.firnline()
    lake.places.interrupted = lambda: bool(asked_to_stop)
    approve = Runs.approve

    def stop_after_one(runs: Runs, run: str) -> None:
        approve(runs, run)
        asked_to_stop.append(True)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Runs, "approve", stop_after_one)
        found = {each.table: each.problem for each in lake.several(at_once=1).expire(**asked())}
    assert all(isinstance(each, Interrupted) for each in found.values())
    hints = [each.hint for each in found.values() if each is not None]
    assert ["resume" in each for each in hints] == [True, False, False, False]
    assert all("not approved" in each for each in hints[1:])
    assert all(each.problem is None for each in four.firnline().several().resume())
    assert [snapshots(four, name) for name in NAMES] == [1, MADE, MADE, MADE]


def test_a_record_that_was_changed_while_the_question_was_asked_is_not_approved(four: RealLake) -> None:
    """What the operator said yes to is what was shown: the plan that lies in the table's folder is another one."""

    def forge(plans: Sequence[TableAnswer[Plan]]) -> None:
        (plan,) = [file for file in four.folder.rglob("runs/*/plan.json") if "/db/c/" in str(file)]
        said = json.loads(plan.read_text())
        plan.write_text(json.dumps({**said, "request": {**said["request"], "clean": True}}))
        event = plan.parent / "events" / "000001.json"
        first = json.loads(event.read_text())
        event.write_text(json.dumps({**first, "detail": {**first["detail"], "plan": seal(plan.read_bytes())}}))

    found = {each.table: each for each in four.firnline().several().expire(confirm=forge, **asked())}
    assert isinstance(found["lake.db.c"].problem, UnreadableMetadata)
    assert (snapshots(four, "c"), is_whole(four, "c")) == (MADE, True)
    assert all(status(found[f"lake.db.{name}"]).state == "done" for name in OTHERS)
    (run,) = four.firnline().runs("lake.db.c")
    assert len(run.run.events) == 1


def test_an_approval_that_another_wrote_carries_nothing_on(four: RealLake) -> None:
    """Who may write into the table's folder can say that a saved plan was approved, and has no seal for it."""
    list(four.firnline().several().plan(save=True, **asked()))
    for first in four.folder.rglob("runs/*/events/000001.json"):
        said = {**json.loads(first.read_text()), "number": 2, "detail": {"approved": True}}
        first.with_name("000002.json").write_text(json.dumps(said))
    for act in (four.firnline().several().resume, four.firnline().several().purge):
        assert all(each.problem is None for each in act())
    assert {each.state for name in ALL for each in four.firnline().runs(name)} == {"planned"}
    assert [snapshots(four, name) for name in NAMES] == [MADE] * len(NAMES)
