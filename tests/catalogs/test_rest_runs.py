"""Runs on a table of a REST catalog: undo lies before the commit, and a ref that the server loses stops the purge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.rest import RestCatalog as PyIcebergCatalog
from pyiceberg.table import Table

from firnline.app.places import now_ms, places_of
from firnline.app.unfinished import GONE_FOR_MS
from firnline.app.verbs.plan_views import PlanView
from firnline.catalogs.rest.commits import RestCommits
from firnline.cli.main import run as command
from firnline.errors import NoSuchTable, OutcomeUnknown, RefusedForSafety, UsageError
from firnline.lake import Lake
from firnline.model.holds import Hold
from firnline.model.times import DAY_MS, MINUTE_MS
from firnline.ops.looking.command_needs import uses_of
from firnline.ops.marks.holds import add_hold, release_hold
from firnline.ops.marks.tags import add_tag, remove_tag
from firnline.ops.runs.status import RunStatus
from firnline.policy.parse import Section, parse_policy
from firnline.ports.catalogs import Attempt, Still, SwapOutcome, Version, always
from firnline.ports.formats import Amendment
from firnline.testing.dated import Clock, dated
from harness.servers import Server
from harness.servers.proxy import Rule, proxy

from .lakes import five_snapshots, rows

pytestmark = pytest.mark.xdist_group("rest")


@dataclass
class Subject:
    """One table with five snapshots, of which four expire; PyIceberg's view of it, and firnline's."""

    server: Server
    name: str
    clock: Clock
    lake: Lake

    @property
    def table(self) -> str:
        return f"lake.{self.name}"

    def theirs(self) -> Table:
        return PyIcebergCatalog("lake", **self.server.settings).load_table(self.name)

    def commits(self) -> RestCommits:
        plain = self.lake.places.source(self.table).commits
        assert isinstance(plain, RestCommits)
        return plain

    def ids(self) -> list[int]:
        return [each.snapshot_id for each in self.theirs().snapshots()]

    def expire(self, grace: str, older_than: str | int = "0d") -> RunStatus:
        carried = self.lake.expire(self.table, older_than=older_than, retain_last=1, grace=grace, blast_radius=1.0)
        assert isinstance(carried, RunStatus)
        return carried

    def files(self) -> set[Path]:
        root = Path(self.theirs().location().removeprefix("file://"))
        return {path for path in root.rglob("*") if path.is_file() and "_firnline" not in path.parts}

    def check_reads(self, numbers: Sequence[int] = range(5)) -> None:
        """Every retained snapshot reads, and the newest holds all rows."""
        table = self.theirs()
        for snapshot in table.snapshots():
            table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(numbers)
        assert self.lake.check(self.table).presence.faults == 0


@pytest.fixture
def subject(own_rest: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subject:
    table = five_snapshots(own_rest, tmp_path, monkeypatch)
    clock = Clock()
    return Subject(own_rest, table, clock, dated(Lake(places_of(Section(), engine="local")), clock))


# ---------------------------------------------------------------- undo before the commit


def test_a_run_waits_before_its_commit_and_undo_calls_it_off(subject: Subject) -> None:
    before, ids = subject.theirs().metadata_location, subject.ids()
    carried = subject.expire("2m")
    assert carried.state == "planned"
    assert carried.run.undo == "before commit"
    assert carried.to_json()["commit_due"]
    assert "the time to undo" in str(carried.waits)
    (waiting,) = subject.lake.resume(subject.table)
    assert (waiting.run.state, waiting.waits) == ("planned", carried.waits)
    undone = subject.lake.undo(str(carried.run.id))
    assert undone.state == "cancelled"
    assert subject.theirs().metadata_location == before
    assert subject.ids() == ids


@pytest.mark.sampled(1)
@pytest.mark.parametrize("verb", ["resume", "purge"])
def test_after_that_time_it_is_committed_and_waits_for_readers_and_cannot_be_undone(
    subject: Subject, verb: str
) -> None:
    act = subject.lake.resume if verb == "resume" else subject.lake.purge_table
    """Two minutes from the command to the delete: half to call it off, half for readers."""
    run = str(subject.expire("2m").run.id)
    assert [each.run.state for each in act(subject.table)] == ["planned"]
    subject.clock.advance(MINUTE_MS)
    files = subject.files()
    (committed,) = act(subject.table)
    assert committed.state == "committed"
    assert "the end of grace" in str(committed.waits)
    assert len(subject.ids()) == 1
    assert files <= subject.files()
    with pytest.raises(RefusedForSafety, match="takes no snapshot back") as refused:
        subject.lake.undo(run)
    assert "hold add" in refused.value.hint
    assert subject.lake.run(run).state == "committed"
    assert [each.state for each in act(subject.table)] == ["committed"]
    subject.clock.advance(MINUTE_MS)
    (done,) = act(subject.table)
    assert done.state == "done"
    assert done.outcomes["deleted"].files >= 4
    with pytest.raises(RefusedForSafety, match="it is purged since") as late:
        subject.lake.undo(run)
    assert late.value.hint.endswith("undo works until the commit"), "and not from it on"
    subject.check_reads()


def test_a_repeated_expire_joins_the_run_that_waits(subject: Subject) -> None:
    first = subject.expire("2m")
    subject.theirs().append(rows(5))
    again = subject.expire("2m")  # its instant moved on with the clock
    assert (again.id, again.state) == (first.id, "planned")
    assert "asked for before" in str(again.waits)
    assert [each.id for each in subject.lake.runs(subject.table)] == [first.id]
    subject.clock.advance(MINUTE_MS)
    carried = subject.expire("2m")
    assert (carried.id, carried.state) == (first.id, "committed")
    assert sorted(carried.expired) == sorted(first.run.plan["expire"])
    assert len(subject.ids()) == 2


def test_an_instant_joins_the_run_of_that_very_instant_alone(subject: Subject) -> None:
    """One who names a later instant asks for more: the run of an earlier one would leave that out unsaid."""
    at_ms = now_ms() + 1
    first = subject.expire("2m", at_ms)
    assert subject.expire("2m", at_ms).id == first.id
    later, by_age = subject.expire("2m", at_ms + 1), subject.expire("2m")
    assert len({first.id, later.id, by_age.id}) == 3


@pytest.mark.full
def test_other_words_make_a_run_of_their_own(subject: Subject) -> None:
    first = subject.expire("2m")
    now = subject.expire("0s")
    assert (now.id != first.id, now.state) == (True, "done")
    subject.clock.advance(MINUTE_MS)
    assert [each.state for each in subject.lake.resume(subject.table)] == ["cancelled"]


def test_a_run_that_was_called_off_is_not_joined(subject: Subject) -> None:
    first = subject.expire("2m")
    subject.lake.undo(first.id)
    assert subject.expire("2m").id != first.id


def test_a_record_that_another_may_have_written_is_not_joined(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = subject.expire("2m")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "of-another"))
    assert subject.expire("2m").id != first.id


@pytest.mark.full
def test_who_says_no_to_a_joined_run_leaves_it_as_it_is(subject: Subject) -> None:
    asked: list[Any] = []

    def say_no(plans: Any) -> None:
        asked.append(plans)
        raise UsageError("no")

    words: dict[str, Any] = {"older_than": now_ms() + 1, "retain_last": 1, "grace": "2m", "blast_radius": 1.0}
    several = subject.lake.several([subject.table])
    (first,) = several.expire(**words)
    assert first.value is not None
    assert first.value.status is not None
    (again,) = several.expire(**words)
    assert again.value is not None
    assert again.value.status is not None
    assert again.value.status.id == first.value.status.id
    assert again.value.plan.stages == ()
    subject.clock.advance(MINUTE_MS)
    with pytest.raises(UsageError):
        several.expire(confirm=say_no, **words)
    ((plan,),) = asked
    assert [each.id for each in plan.value.expire] == first.value.status.run.plan["expire"]
    with pytest.raises(UsageError):
        subject.lake.expire(subject.table, confirm=say_no, **words)
    assert [each.state for each in subject.lake.runs(subject.table)] == ["planned"]
    (carried,) = several.expire(**words)
    assert carried.value is not None
    assert carried.value.status is not None
    assert carried.value.status.state == "committed"


@pytest.mark.parametrize(("command", "commits"), [("purge", True), ("resume", True), ("plan", False)])
def test_who_may_purge_there_may_commit(subject: Subject, command: str, commits: bool) -> None:
    work = subject.lake.places.table_context(subject.table)
    assert ("commit" in uses_of(command, work.source.load().capabilities.undo).catalog) is commits


@pytest.mark.full
def test_commit_does_not_wait(subject: Subject) -> None:
    carried = subject.expire("2m")
    committed = subject.lake.commit(str(carried.run.id))
    assert committed.state == "committed"
    assert len(subject.ids()) == 1
    assert committed.run.purge_due_ms == carried.run.events[0].at_ms + 2 * MINUTE_MS, "grace is as long as ever"
    subject.clock.advance(MINUTE_MS + MINUTE_MS // 2)
    assert [each.state for each in subject.lake.purge_table(subject.table)] == ["committed"]
    subject.clock.advance(MINUTE_MS)
    assert [each.state for each in subject.lake.purge_table(subject.table)] == ["done"]


def test_a_saved_plan_that_is_committed_has_all_of_its_grace_from_then_on(subject: Subject) -> None:
    words: dict[str, Any] = {"older_than": now_ms() + 1, "retain_last": 1, "grace": "2m", "blast_radius": 1.0}
    saved = str(subject.lake.plan(subject.table, save=True, **words).plan.run)
    subject.clock.advance(DAY_MS)
    committed = subject.lake.commit(saved)
    assert committed.run.committed is not None
    assert committed.run.purge_due_ms == committed.run.committed.at_ms + 2 * MINUTE_MS


def test_a_run_that_would_be_refused_is_neither_approved_nor_joined(subject: Subject) -> None:
    words: dict[str, Any] = {"older_than": now_ms() + 1, "retain_last": 1, "grace": "2m", "blast_radius": 0.01}
    saved = subject.lake.plan(subject.table, save=True, **words).plan
    assert saved.refused is not None
    with pytest.raises(RefusedForSafety, match="would be refused"):
        subject.lake.approve(str(saved.run), by="me")
    assert [each.state for each in subject.lake.runs(subject.table)] == ["planned"]


def test_a_joined_run_that_may_not_go_any_more_is_told_and_not_carried_on(subject: Subject) -> None:
    """It waits; meanwhile a hold forbids everything. The question for other tables must not take it with them."""
    words: dict[str, Any] = {"older_than": now_ms() + 1, "retain_last": 1, "grace": "2m", "blast_radius": 0.9}
    several = subject.lake.several([subject.table])
    (first,) = several.expire(**words)
    assert first.value is not None
    assert first.value.status is not None
    subject.clock.advance(MINUTE_MS)
    snapshots = subject.ids()
    add_hold(subject.lake.places.table_context(subject.table), Hold("case", "me", "audit", None, None))
    (again,) = several.expire(**words)
    assert again.value is None or again.value.status is None or again.value.status.state == "planned"
    assert subject.ids() == snapshots


def test_without_grace_all_is_done_at_once(subject: Subject) -> None:
    before = subject.files()
    carried = subject.expire("0s")
    assert carried.state == "done"
    assert len(subject.ids()) == 1
    assert carried.run.committed is not None
    assert carried.run.committed.detail["location"] == subject.theirs().metadata_location
    assert len(before - subject.files()) == carried.outcomes["deleted"].files > 0
    subject.check_reads()


def test_the_plan_says_so(subject: Subject, capsys: pytest.CaptureFixture[str]) -> None:
    view = subject.lake.plan(subject.table, older_than=now_ms() + 1, retain_last=1)
    assert view.to_json()["undo"] == "before commit"
    said = str(view)
    assert "1. would first change nothing, undo possible: 12h" in said
    assert "which cannot be taken back" in said
    assert "3. would then wait for readers: 12h" in said
    assert command(["expire", subject.table, "--older-than", str(now_ms() + 1), "--blast-radius", "100%", "--yes"]) == 0
    shown = capsys.readouterr().out
    assert "planned, waits for the end of the time to undo at" in shown
    assert re.search(r"calls it off until 2[0-9: -]+ UTC", shown)


# ---------------------------------------------------------------- what the server keeps and loses


class Meanwhile:
    """Commits before which something else happens, once."""

    def __init__(self, commits: RestCommits, act: Any, after: bool = False) -> None:
        self.commits, self.act, self.after = commits, act, after

    def prepare(self, *of: Any) -> Attempt:
        return self.commits.prepare(*of)

    def commit(self, attempt: Attempt) -> SwapOutcome:
        act, self.act = self.act, lambda: None
        act()
        return self.commits.commit(attempt)

    def landed(self, proof: Mapping[str, Any], now: Version, still: Still = always) -> bool:
        return self.commits.landed(proof, now, still)

    def fence(self, proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
        return self.commits.fence(proofs, now)


@pytest.fixture
def meanwhile(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes the next commit of firnline happen after an act."""

    def arrange(act: Any) -> None:
        commits = Meanwhile(subject.commits(), act)
        monkeypatch.setattr("firnline.app.places._commits", lambda *_: commits)

    yield arrange
    monkeypatch.undo()


@pytest.mark.full
def test_a_tag_that_the_server_drops_with_its_snapshot_is_noticed_and_nothing_is_purged(
    subject: Subject, meanwhile: Any
) -> None:
    """The tag appears between our reading and the server's commit: no requirement could name it."""
    oldest, files = subject.ids()[0], subject.files()
    meanwhile(lambda: subject.theirs().manage_snapshots().create_tag(oldest, "precious").commit())
    with pytest.raises(RefusedForSafety, match="precious") as lost:
        subject.expire("0s")
    assert lost.value.exit_code == 14
    assert "precious" not in subject.theirs().metadata.refs
    assert files <= subject.files()
    (run,) = subject.lake.runs(subject.table)
    assert run.run.committed is not None
    built_on = run.run.committed.detail["built_on"]
    assert built_on in lost.value.hint
    rescued = PyIcebergCatalog("lake", **subject.server.settings).register_table(f"{subject.name}_rescued", built_on)
    assert rescued.scan(snapshot_id=rescued.metadata.refs["precious"].snapshot_id).to_arrow()["id"].to_pylist() == [0]
    with pytest.raises(RefusedForSafety, match="precious"):
        subject.lake.purge(str(run.run.id))
    subject.theirs().append(rows(5))
    with pytest.raises(RefusedForSafety, match="_rescued is the same table"):
        subject.expire("0s")
    policy = parse_policy(f"shared-with: [{subject.table}_rescued]", "a test's policy")
    subject.lake = Lake(places_of(policy, engine="local", clock=subject.clock))
    later = subject.expire("0s")
    assert later.state == "done"
    assert rescued.scan(snapshot_id=oldest).to_arrow()["id"].to_pylist() == [0]


@pytest.mark.full
def test_a_known_ref_that_moved_loses_the_race_and_wins_the_next_decision(subject: Subject, meanwhile: Any) -> None:
    oldest = subject.ids()[0]
    subject.theirs().manage_snapshots().create_tag(subject.ids()[-1], "known").commit()

    def move() -> None:
        table = subject.theirs()
        table.manage_snapshots().remove_tag("known").create_tag(oldest, "known").commit()

    meanwhile(move)
    carried = subject.expire("0s")
    assert carried.state == "done"
    assert len(carried.run.attempts) == 2
    assert oldest in subject.ids()
    subject.check_reads()


def test_a_table_that_is_dropped_during_the_run_is_named(subject: Subject, meanwhile: Any) -> None:
    files = subject.files()
    theirs = PyIcebergCatalog("lake", **subject.server.settings)
    meanwhile(lambda: theirs.drop_table(subject.name))
    with pytest.raises(NoSuchTable, match=r"\.t"):
        subject.expire("0s")
    assert all(path.exists() for path in files)


def test_a_frozen_commit_cannot_land_after_its_run_was_called_off(subject: Subject, meanwhile: Any) -> None:
    class Frozen(BaseException):
        pass

    caught: list[Attempt] = []

    def freeze() -> None:
        raise Frozen

    meanwhile(freeze)
    commits: Any = subject.lake.places.source(subject.table).commits
    plain = commits.prepare
    commits.prepare = lambda *of: caught.append(plain(*of)) or caught[-1]
    with pytest.raises(Frozen):
        subject.expire("0s")
    ids = subject.ids()
    (run,) = [each.run for each in subject.lake.runs(subject.table)]
    assert run.state == "committing"
    undone = subject.lake.undo(str(run.id), break_lease=True)
    assert undone.state == "cancelled"
    assert commits.commit(caught[0]) is SwapOutcome.LOST
    assert subject.ids() == ids
    assert "firnline-fence-1" in subject.theirs().metadata.refs


@pytest.mark.full
def test_a_frozen_commit_cannot_land_after_somebody_else_carried_its_run_on(subject: Subject, meanwhile: Any) -> None:
    """Both remove by the same refs; what was tagged between the two would go with the late one, unseen by the purge."""

    class Frozen(BaseException):
        pass

    caught: list[Attempt] = []

    def freeze() -> None:
        raise Frozen

    meanwhile(freeze)
    commits: Any = subject.lake.places.source(subject.table).commits
    plain = commits.prepare
    commits.prepare = lambda *of: caught.append(plain(*of)) or caught[-1]
    with pytest.raises(Frozen):
        subject.expire("0s")
    oldest = subject.ids()[0]
    subject.theirs().manage_snapshots().create_tag(oldest, "precious").commit()
    (carried,) = subject.lake.resume(subject.table, break_lease=True)
    assert carried.state == "done"
    assert str(oldest) not in carried.expired
    # Not only refused because some of it is gone already: other servers remove the rest without a word.
    assert commits.commit(caught[0]) is SwapOutcome.LOST
    assert oldest in subject.ids()
    assert "precious" in subject.theirs().metadata.refs
    subject.check_reads()


class Died(BaseException):
    pass


class DyingInExpiry(Meanwhile):
    """The process dies whenever it is about to send what takes snapshots out, `times` times."""

    def __init__(self, commits: RestCommits, times: int) -> None:
        super().__init__(commits, None)
        self.times = times

    def commit(self, attempt: Attempt) -> SwapOutcome:
        if self.times and any(each["action"] == "remove-snapshots" for each in attempt.proof["updates"]):
            self.times -= 1
            raise Died
        return self.commits.commit(attempt)


@pytest.mark.full
def test_a_run_that_dies_in_its_commit_again_and_again_comes_to_the_same_end(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fences each try off names the head of main, so that nothing stays that was to go."""
    head, commits = subject.ids()[-1], DyingInExpiry(subject.commits(), 4)
    monkeypatch.setattr("firnline.app.places._commits", lambda *_: commits)
    with pytest.raises(Died):
        subject.expire("0s")
    for _ in range(3):
        with pytest.raises(Died):
            subject.lake.resume(subject.table, break_lease=True)
    (carried,) = subject.lake.resume(subject.table, break_lease=True)
    assert carried.state == "done"
    assert subject.ids() == [head]
    assert {ref.snapshot_id for ref in subject.theirs().metadata.refs.values()} == {head}
    subject.check_reads()


class Held(Meanwhile):
    """The first commit is on its way for long and nobody answers; the server is too busy for every later one."""

    def __init__(self, commits: RestCommits) -> None:
        super().__init__(commits, None)
        self.held: list[Attempt] = []

    def commit(self, attempt: Attempt) -> SwapOutcome:
        self.held.append(attempt)
        return SwapOutcome.UNKNOWN if len(self.held) == 1 else SwapOutcome.LOST


def test_a_request_that_nobody_answered_is_fenced_off_although_the_next_one_lost(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To go on as after any lost race would let it land beside the next try, and drop what was tagged in between."""
    real = subject.commits()
    held = Held(real)
    monkeypatch.setattr("firnline.app.places._commits", lambda *_: held)
    with pytest.raises(OutcomeUnknown):
        subject.expire("0s")
    oldest = subject.ids()[0]
    subject.theirs().manage_snapshots().create_tag(oldest, "precious").commit()
    monkeypatch.setattr("firnline.app.places._commits", lambda *_: real)
    (carried,) = subject.lake.resume(subject.table, break_lease=True)
    assert carried.state == "done"
    assert real.commit(held.held[0]) is SwapOutcome.LOST
    assert "precious" in subject.theirs().metadata.refs
    subject.check_reads()


# ---------------------------------------------------------------- answers that never come


def through(subject: Subject, url: str, monkeypatch: pytest.MonkeyPatch) -> Subject:
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", url)
    return replace(subject, lake=dated(Lake(places_of(Section(), engine="local")), subject.clock))


def is_commit(method: str, path: str) -> bool:
    return method == "POST" and "/tables/" in path


@pytest.mark.parametrize("fault", ["drop", "cut", "busy"])
@pytest.mark.full
def test_an_answer_that_never_comes_is_settled_by_sending_it_again(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, fault: Any
) -> None:
    with proxy(subject.server.url) as faulty:
        faulty.rules = [Rule(fault, when=is_commit, times=2)]
        carried = through(subject, faulty.url, monkeypatch).expire("0s")
        assert faulty.counts[fault] == 2
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", subject.server.url)
    assert carried.state == "done"
    assert len(carried.run.attempts) == 1
    subject.check_reads()


@pytest.mark.full
def test_a_commit_that_landed_without_an_answer_is_found_by_whoever_resumes(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = subject.files()
    with proxy(subject.server.url) as faulty:
        faulty.rules = [Rule("drop", when=is_commit, times=1), Rule("cut", when=is_commit)]
        with pytest.raises(OutcomeUnknown):
            through(subject, faulty.url, monkeypatch).expire("0s")
    assert len(subject.ids()) == 1
    assert files <= subject.files()
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", subject.server.url)
    (done,) = subject.lake.resume(subject.table, break_lease=True)
    assert done.state == "done"
    assert len(done.run.attempts) == 1
    subject.check_reads()


class SentTwice(Meanwhile):
    """A proxy gets no answer to a commit that landed, sends it once more, and passes on what is said of that."""

    def commit(self, attempt: Attempt) -> SwapOutcome:
        assert self.commits.commit(attempt) is SwapOutcome.DONE
        return self.commits.commit(attempt)


def test_a_commit_that_a_proxy_sent_twice_has_landed_although_it_is_refused(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended with "nothing was changed"."""
    twice = SentTwice(subject.commits(), None)
    monkeypatch.setattr("firnline.app.places._commits", lambda *_: twice)
    assert subject.expire("0s").state == "done"
    assert len(subject.ids()) == 1
    subject.check_reads()


# ---------------------------------------------------------------- marks, schemas


@pytest.mark.full
def test_tags_and_holds_are_written_through_the_server(subject: Subject) -> None:
    oldest, second = (str(each) for each in subject.ids()[:2])
    work = subject.lake.places.table_context(subject.table)
    add_tag(work, "kept", oldest, None)
    add_hold(work, Hold("case", "somebody", "a test", second, None))
    refs = subject.theirs().metadata.refs
    assert str(refs["kept"].snapshot_id) == oldest
    assert refs["firnline-hold-case"].max_ref_age_ms
    subject.expire("0s")
    assert [str(each) for each in subject.ids()[:2]] == [oldest, second]
    remove_tag(work, "kept")
    release_hold(work, "case")
    assert set(subject.theirs().metadata.refs) == {"main"}
    with pytest.raises(UsageError):
        remove_tag(work, "kept")


@pytest.mark.full
def test_schemas_that_nothing_uses_go_too(subject: Subject) -> None:
    from pyiceberg.types import StringType

    table = subject.theirs()
    with table.update_schema() as update:
        update.add_column("name", StringType())
    table.append(rows(5).append_column("name", [["x"]]))
    carried = subject.lake.expire(
        subject.table, older_than=now_ms() + 1, retain_last=1, grace="0s", blast_radius=1.0, clean=True
    )
    assert isinstance(carried, RunStatus)
    assert [each.schema_id for each in subject.theirs().metadata.schemas] == [1]
    subject.check_reads(range(6))


def test_nothing_to_expire_leaves_the_table_alone(subject: Subject) -> None:
    before = subject.theirs().metadata_location
    assert isinstance(subject.lake.expire(subject.table, grace="0s"), PlanView)
    assert subject.theirs().metadata_location == before


# ---------------------------------------------------------------- found by the list of unfinished runs


@pytest.mark.full
def test_a_run_of_a_renamed_table_is_found_although_the_server_tells_no_places(
    subject: Subject, tmp_path: Path
) -> None:
    config = parse_policy(f"records: {tmp_path}/records")
    lake = dated(Lake(places_of(config, engine="local")), subject.clock)
    carried = lake.expire(subject.table, older_than=now_ms() + 1, retain_last=1, grace="2m", blast_radius=1.0)
    assert isinstance(carried, RunStatus)
    namespace, _, _ = subject.name.rpartition(".")
    PyIcebergCatalog("lake", **subject.server.settings).rename_table(subject.name, f"{namespace}.renamed")
    (found,) = lake.several().runs()
    assert (found.table, found.problem) == (f"lake.{namespace}.renamed", None)
    assert [each.run.id.stamp for each in found.value or ()] == [carried.run.id.stamp]
    assert [len(each.value or ()) for each in lake.several().resume()] == [1]
    PyIcebergCatalog("lake", **subject.server.settings).drop_table(f"{namespace}.renamed")
    subject.clock.advance(GONE_FOR_MS - DAY_MS)
    assert lake.several().resume() == []
    assert list((tmp_path / "records" / "_firnline" / "unfinished").iterdir())
    subject.clock.advance(2 * DAY_MS)
    assert list(lake.several().runs()) == []
    assert list((tmp_path / "records" / "_firnline" / "unfinished").iterdir())
    assert lake.several().resume() == []
    assert not list((tmp_path / "records" / "_firnline" / "unfinished").iterdir())
