"""One process at a time: the lease. And the events of a run, of which each is written once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firnline.errors import AlreadyExists, LeaseHeld, OutcomeUnknown, RefusedForSafety, StoreError, UnreadableMetadata
from firnline.journal import lease as lease_module
from firnline.journal.events import FINISHED, MOVES, RunState, append_event, read_events
from firnline.journal.layout import RecordFolder
from firnline.journal.lease import Lease, LeaseTimes, is_certainly_gone, latest_claim, this_process
from firnline.ports.stores import ObjectMeta
from firnline.stores.objects import ObjectStores
from firnline.stores.removers import OwnDiscard

TIMES = LeaseTimes(length_ms=120_000, margin_ms=30_000, skew_ms=0)
NOON = 1_800_000_000_000

MakeLease = Callable[..., Lease]

NOTHING: dict[str, Any] = {"snapshots": [], "refs": {}, "payload": {}}
"""What a commit takes out that takes nothing out."""


class Clock:
    """The clocks of one machine. Frozen time passes on all; a suspended machine's on all but the monotonic one."""

    def __init__(self) -> None:
        self.wall_ms = NOON
        self.monotonic_s = 5_000.0
        self.boot_ms = 7_000_000

    def pass_s(self, seconds: float) -> None:
        self.suspend_s(seconds)
        self.monotonic_s += seconds

    def suspend_s(self, seconds: float) -> None:
        self.wall_ms += round(seconds * 1000)
        self.boot_ms += round(seconds * 1000)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    # The lease's own view of the clock alone: other threads of this process sleep too.
    monkeypatch.setattr(lease_module, "time", SimpleNamespace(monotonic=lambda: made.monotonic_s, sleep=made.pass_s))
    monkeypatch.setattr(lease_module, "boot_ms", lambda: made.boot_ms)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "lease")


def make(folder: str, clock: Clock, owner: str = "", store: object | None = None) -> Lease:
    chosen = ObjectStores() if store is None else store
    return Lease(chosen, folder, TIMES, owner or this_process(), lambda: clock.wall_ms)  # type: ignore[arg-type]


# ---------------------------------------------------------------- one holder at a time


def test_a_second_process_waits_and_is_told_until_when(folder: str, clock: Clock) -> None:
    make(folder, clock, "first:1:aa").acquire()
    with pytest.raises(LeaseHeld, match=r"first:1:aa.*2027-01-15 08:02:30 UTC") as held:
        make(folder, clock).acquire()
    assert held.value.exit_code == 11
    assert "`break_lease=True`" in held.value.hint


def test_a_released_lease_is_free_at_once(folder: str, clock: Clock) -> None:
    first = make(folder, clock)
    first.acquire()
    first.release()
    make(folder, clock).acquire()


def test_a_holder_that_released_sends_nothing_more(folder: str, clock: Clock) -> None:
    first = make(folder, clock)
    first.acquire()
    first.release()
    with pytest.raises(LeaseHeld):
        first.check()


def test_the_holder_stops_a_margin_before_the_end_and_others_wait_a_margin_beyond(folder: str, clock: Clock) -> None:
    holder, other = make(folder, clock), make(folder, clock)
    holder.acquire()
    clock.pass_s(89.9)
    holder.check()
    clock.pass_s(0.1)
    with pytest.raises(LeaseHeld, match="ran out"):
        holder.check()
    clock.pass_s(60)  # 150 s: length and margin
    with pytest.raises(LeaseHeld, match="another process"):
        other.acquire()
    clock.pass_s(0.001)
    other.acquire()


def test_work_elsewhere_ends_before_anybody_can_take_over_even_if_clocks_differ(folder: str, clock: Clock) -> None:
    times = LeaseTimes(length_ms=120_000, margin_ms=30_000, skew_ms=600_000)
    holder, other = (Lease(ObjectStores(), folder, times, name, lambda: clock.wall_ms) for name in ("a:1:a", "b:1:b"))
    with pytest.raises(LeaseHeld):
        holder.lend()
    holder.acquire()
    holder.lend()
    clock.pass_s(10)
    left_s = holder.lend() / 1_000
    assert left_s == 110 + 300
    clock.pass_s(left_s + times.skew_ms / 2 / 1_000)
    with pytest.raises(LeaseHeld):
        other.acquire()


def test_a_frozen_process_wakes_up_and_sends_nothing(folder: str, clock: Clock) -> None:
    frozen, other = make(folder, clock), make(folder, clock)
    frozen.acquire()
    clock.pass_s(600)
    other.acquire()
    for send in (frozen.check, frozen.renew):
        with pytest.raises(LeaseHeld, match="nothing more was sent"):
            send()
    frozen.release()
    other.check()
    newest = latest_claim(ObjectStores(), folder)
    assert newest is not None
    assert (newest.owner, newest.released) == (other.owner, False)


def test_a_suspended_machine_wakes_up_and_sends_nothing(folder: str, clock: Clock) -> None:
    """Linux stops its monotonic clock while a machine is suspended: that clock alone would say nothing happened."""
    suspended = make(folder, clock)
    suspended.acquire()
    clock.suspend_s(600)
    with pytest.raises(LeaseHeld, match="nothing more was sent"):
        suspended.check()
    suspended.release()
    assert len(list(ObjectStores().list(folder))) == 1


def test_a_wall_clock_that_was_set_back_gives_no_more_time(folder: str, clock: Clock) -> None:
    holder = make(folder, clock)
    holder.acquire()
    clock.pass_s(100)
    clock.wall_ms -= 3_600_000
    with pytest.raises(LeaseHeld):
        holder.check()


def test_renewal_comes_after_half_of_the_time_and_extends_it(folder: str, clock: Clock) -> None:
    holder = make(folder, clock)
    holder.acquire()
    clock.pass_s(44)
    holder.renew()
    assert len(list(ObjectStores().list(folder))) == 1
    clock.pass_s(2)
    holder.renew()
    assert len(list(ObjectStores().list(folder))) == 2
    clock.pass_s(89)
    holder.check()


def test_a_broken_lease_stops_its_holder_at_its_next_renewal(folder: str, clock: Clock) -> None:
    holder, breaker = make(folder, clock), make(folder, clock)
    holder.acquire()
    breaker.acquire(break_it=True)
    clock.pass_s(50)
    with pytest.raises(LeaseHeld, match="took the lease"):
        holder.renew()
    with pytest.raises(LeaseHeld):
        holder.check()
    breaker.check()


def test_releasing_a_lease_that_was_broken_hides_nothing_and_takes_nothing(folder: str, clock: Clock) -> None:
    """The work may have ended well just before; an error from the release would say otherwise."""
    holder, breaker = make(folder, clock), make(folder, clock)
    holder.acquire()
    breaker.acquire(break_it=True)
    holder.release()
    newest = latest_claim(ObjectStores(), folder)
    assert newest is not None
    assert newest.owner == breaker.owner
    assert not newest.released


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"owner": "x"}', b'{"owner": "x", "until_ms": "soon", "released": false}']
)
def test_a_damaged_claim_stops_since_it_may_be_somebodys(folder: str, clock: Clock, damage: bytes) -> None:
    make(folder, clock).acquire()
    ObjectStores().put(f"{folder}/000000000002.json", damage)
    with pytest.raises(UnreadableMetadata, match=r"000000000002\.json is damaged"):
        make(folder, clock).acquire()


def test_a_strange_name_among_the_claims_stops(folder: str, clock: Clock) -> None:
    ObjectStores().put(f"{folder}/notes.json", b"{}")
    with pytest.raises(UnreadableMetadata, match=r"notes\.json"):
        make(folder, clock).acquire()


def test_discarded_claims_never_include_the_newest_and_numbers_go_on(folder: str, clock: Clock) -> None:
    store = ObjectStores()
    for _ in range(10):
        each = make(folder, clock)
        each.acquire()
        each.release()
        OwnDiscard().discard(each.superseded())
    assert len(list(store.list(folder))) <= 8
    newest = latest_claim(store, folder)
    assert newest is not None
    assert newest.number == 20


def test_only_claims_are_discarded_from_the_folder_of_claims(folder: str, clock: Clock) -> None:
    """A property of the table may say that its records lie in a folder that is full of other files."""
    store, each = ObjectStores(), make(folder, clock)
    theirs = [f"{folder}/{name}" for name in ("1.pdf", "000000000001.pdf", "00000000000a", "below/1.pdf")]
    for key in theirs:
        store.put(key, b"theirs")
    for _ in range(10):
        each.acquire()
        each.release()
        OwnDiscard().discard(each.superseded())
    assert {each.key for each in store.list(folder)} >= set(theirs)
    assert len(list(store.list(folder))) <= 8 + len(theirs)


class LatePut(ObjectStores):
    """A store whose caller sleeps between looking and writing, while others take the lease again and again."""

    def __init__(self, folder: str, clock: Clock) -> None:
        super().__init__()
        self.meanwhile = lambda: self._others(folder, clock)

    def _others(self, folder: str, clock: Clock) -> None:
        for _ in range(10):
            each = make(folder, clock)
            each.acquire(break_it=True)
            OwnDiscard().discard(each.superseded())

    def put_if_absent(self, key: str, data: bytes) -> None:
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        super().put_if_absent(key, data)


def test_a_number_that_was_used_and_discarded_is_not_won(folder: str, clock: Clock) -> None:
    late = make(folder, clock, store=LatePut(folder, clock))
    with pytest.raises(LeaseHeld):
        late.acquire()
    with pytest.raises(LeaseHeld):
        late.check()


# ---------------------------------------------------------------- races


def test_of_racing_threads_exactly_one_gets_the_lease(tmp_path: Path) -> None:
    for number in range(20):
        won = list(_race(str(tmp_path / str(number)), threads=6))
        assert len(won) == 1


def _race(folder: str, threads: int) -> Iterator[str]:
    start = threading.Barrier(threads)
    won: list[str] = []

    def take(owner: str) -> None:
        each = Lease(ObjectStores(), folder, TIMES, owner, lambda: NOON)
        start.wait()
        try:
            each.acquire()
            won.append(owner)
        except LeaseHeld:
            pass

    racers = [threading.Thread(target=take, args=(f"t{n}",)) for n in range(threads)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    yield from won


RACER = """
import sys, time
from firnline.errors import LeaseHeld
from firnline.journal.lease import Lease, LeaseTimes
from firnline.stores.objects import ObjectStores
folder, owner, start, rounds = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
for number in range(rounds):
    time.sleep(max(0, start + number * 0.02 - time.time()))
    try:
        Lease(ObjectStores(), f"{folder}/{number}", LeaseTimes(), owner, lambda: time.time_ns() // 10**6).acquire()
        print(number)
    except LeaseHeld:
        pass
"""


def test_of_racing_processes_exactly_one_gets_the_lease(tmp_path: Path) -> None:
    rounds, start = 40, time.time() + 3
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path), owner, str(start), str(rounds)], stdout=subprocess.PIPE
        )
        for owner in ("a", "b", "c")
    ]
    won = [int(line) for racer in racers for line in racer.communicate(timeout=60)[0].split()]
    assert sorted(won) == list(range(rounds))


# ---------------------------------------------------------------- answers that get lost


class LosesAnswers(ObjectStores):
    """Says something else than what happened: the write lands or not, and the caller hears `said`."""

    def __init__(self, said: Exception, lands: bool) -> None:
        super().__init__()
        self.said, self.lands = said, lands

    def put_if_absent(self, key: str, data: bytes) -> None:
        if self.lands:
            super().put_if_absent(key, data)
        raise self.said


class Unreadable(LosesAnswers):
    def get(self, key: str) -> bytes:
        raise StoreError("no answer")


@pytest.mark.parametrize("said", [AlreadyExists("it exists"), OutcomeUnknown("no answer")])
def test_a_claim_whose_answer_got_lost_is_read_back(folder: str, clock: Clock, said: Exception) -> None:
    holder = make(folder, clock, store=LosesAnswers(said, lands=True))
    holder.acquire()
    holder.check()


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        (OutcomeUnknown("No space left on device"), OutcomeUnknown, "No space left"),
        (AlreadyExists("it exists"), LeaseHeld, "another process took the lease"),
    ],
)
def test_a_claim_that_is_not_there_names_what_kept_it(
    folder: str, clock: Clock, said: Exception, error: type[Exception], words: str
) -> None:
    """A disk that is full: all that was told is that there is no such object as the lease."""
    with pytest.raises(error, match=words):
        make(folder, clock, store=LosesAnswers(said, lands=False)).acquire()


@pytest.fixture
def record(tmp_path: Path) -> RecordFolder:
    return RecordFolder(str(tmp_path / "_firnline"), "20270101T000000Z-aaaaaa")


@pytest.mark.parametrize("said", [AlreadyExists("it exists"), OutcomeUnknown("no answer")])
def test_an_event_whose_answer_got_lost_is_read_back(record: RecordFolder, said: Exception) -> None:
    event = append_event(LosesAnswers(said, lands=True), record, None, RunState.PLANNED, NOON)
    assert read_events(ObjectStores(), record) == [event]


def test_an_event_that_nobody_can_read_back_is_unknown(record: RecordFolder) -> None:
    for store in (LosesAnswers(OutcomeUnknown("no answer"), lands=False), Unreadable(OutcomeUnknown("no"), lands=True)):
        with pytest.raises(OutcomeUnknown) as unknown:
            append_event(store, record, None, RunState.PLANNED, NOON)
        assert unknown.value.exit_code == 13


def test_an_event_that_another_process_wrote_first_is_not_taken_for_ours(record: RecordFolder) -> None:
    """Equal in every word but the write id: both processes wanted the same move."""
    store = ObjectStores()
    planned = append_event(store, record, None, RunState.PLANNED, NOON, removal=NOTHING)
    append_event(store, record, planned, RunState.COMMITTING, NOON, removal=NOTHING)
    with pytest.raises(LeaseHeld, match="another process moved this run"):
        append_event(store, record, planned, RunState.COMMITTING, NOON, removal=NOTHING)
    assert len(read_events(store, record)) == 2


# ---------------------------------------------------------------- moves


@pytest.mark.parametrize("old", RunState)
@pytest.mark.parametrize("new", RunState)
def test_only_legal_moves_are_written(tmp_path: Path, old: RunState, new: RunState) -> None:
    record, store = RecordFolder(str(tmp_path), "run"), ObjectStores()
    detail = {"removal": NOTHING, "tier": "cold", "table": "cold.db.t", "root": "/cold", "snapshots": []}
    before = append_event(store, record, None, old, NOON, **detail)
    if new in MOVES[old]:
        assert append_event(store, record, before, new, NOON, **detail).number == 2
    else:
        with pytest.raises(RefusedForSafety, match=f"that is {old} cannot become {new}"):
            append_event(store, record, before, new, NOON, **detail)
    assert len(read_events(store, record)) == 1 + (new in MOVES[old])


def test_what_is_finished_stays_so_and_what_was_purged_in_part_cannot_be_undone() -> None:
    assert all(not MOVES[state] for state in FINISHED)
    assert MOVES[RunState.PURGING] == {RunState.PURGING, RunState.DONE}


def _some_events(record: RecordFolder, store: ObjectStores) -> list[str]:
    event = None
    for state in (RunState.PLANNED, RunState.COMMITTING, RunState.COMMITTED):
        event = append_event(store, record, event, state, NOON, removal=NOTHING)
    return sorted(each.key for each in store.list(record.events))


@pytest.mark.parametrize("gone", [0, 1])
def test_a_hole_in_the_numbers_stops(record: RecordFolder, gone: int) -> None:
    store = ObjectStores()
    Path(_some_events(record, store)[gone]).unlink()
    with pytest.raises(UnreadableMetadata, match="not whole"):
        read_events(store, record)


@pytest.mark.parametrize("state", ["planned", "done", "cancelled"])
def test_a_move_that_no_run_makes_stops(record: RecordFolder, state: str) -> None:
    """A run that is said to be only planned again after its commit would protect none of what an undo needs."""
    store = ObjectStores()
    last = Path(_some_events(record, store)[-1])
    more = {**json.loads(last.read_bytes()), "number": 4, "state": state}
    last.with_name("000004.json").write_text(json.dumps(more))
    with pytest.raises(UnreadableMetadata, match="not whole"):
        read_events(store, record)


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"number": 2, "state": "flying"}', b'{"number": 2}'])
def test_a_damaged_event_stops(record: RecordFolder, damage: bytes) -> None:
    store = ObjectStores()
    Path(_some_events(record, store)[1]).write_bytes(damage)
    with pytest.raises(UnreadableMetadata, match="is damaged"):
        read_events(store, record)


def test_an_event_says_what_the_record_needs(record: RecordFolder) -> None:
    event = append_event(ObjectStores(), record, None, RunState.PLANNED, NOON, removal={"snapshots": [2**62 + 1]})
    said = json.loads(ObjectStores().get(f"{record.events}/000001.json"))
    assert said["write_id"] == event.write_id
    assert read_events(ObjectStores(), record)[0].detail == {"removal": {"snapshots": [2**62 + 1]}}


class Untidy(ObjectStores):
    """Lists a stranger's unfinished write among the events."""

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        yield from super().list(prefix)
        yield ObjectMeta(f"{prefix}/leftover.tmp", 3)


def test_what_is_no_event_is_passed_over(record: RecordFolder) -> None:
    store = Untidy()
    _some_events(record, store)
    assert [event.number for event in read_events(store, record)] == [1, 2, 3]


def test_who_takes_over_also_waits_out_the_difference_of_two_clocks(folder: str, clock: Clock) -> None:
    """A machine whose clock is minutes ahead must not take a lease that is still in use."""
    times = LeaseTimes(length_ms=120_000, margin_ms=30_000)
    Lease(ObjectStores(), folder, times, "elsewhere:1:::aa", lambda: clock.wall_ms).acquire()
    ahead = Lease(ObjectStores(), folder, times, this_process(), lambda: clock.wall_ms + 4 * 60_000)
    with pytest.raises(LeaseHeld):
        ahead.acquire()


def died_here() -> str:
    """Returns the name of a process of this machine that is no more."""
    script = "from firnline.journal.lease import this_process; print(this_process())"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def test_the_lease_of_a_process_that_died_on_this_machine_is_free_at_once(folder: str, clock: Clock) -> None:
    died = died_here()
    assert is_certainly_gone(died)
    make(folder, clock, died).acquire()
    before = clock.wall_ms
    make(folder, clock).acquire()
    assert clock.wall_ms == before


class Remote(ObjectStores):
    """A store elsewhere: its keys are those of local files, under a name of a bucket."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def _here(self, key: str) -> str:
        return key.replace("s3://bucket", self._folder, 1)

    def get(self, key: str) -> bytes:
        return super().get(self._here(key))

    def put_if_absent(self, key: str, data: bytes) -> None:
        super().put_if_absent(self._here(key), data)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        return super().list(self._here(prefix))


FAR = LeaseTimes(length_ms=120_000, margin_ms=30_000)
"""As a run has them: the clocks of two machines may differ by ten minutes."""


def far(folder: str, clock: Clock, owner: str = "") -> Lease:
    """Returns a lease in a bucket, where what a process sent may land after its end."""
    return Lease(Remote(folder), "s3://bucket/lease", FAR, owner or this_process(), lambda: clock.wall_ms)


def test_in_a_bucket_it_is_ours_at_once_and_used_once_all_requests_have_landed(folder: str, clock: Clock) -> None:
    far(folder, clock, died_here()).acquire()
    clock.pass_s(1)
    ours, before = far(folder, clock), clock.wall_ms
    ours.acquire()
    assert clock.wall_ms - before == FAR.margin_ms, "no request lasts longer, and it was sent before now"
    ours.check()
    with pytest.raises(LeaseHeld):
        far(folder, clock, "elsewhere:1:::bb").acquire()


def test_who_waits_for_a_dead_process_and_dies_too_is_waited_for_again(folder: str, clock: Clock) -> None:
    for _ in range(3):
        before = clock.wall_ms
        far(folder, clock, died_here()).acquire()
    assert clock.wall_ms - before == FAR.margin_ms


@pytest.mark.parametrize("make_lease", [make, far])
def test_the_end_of_a_process_says_nothing_of_executors(folder: str, clock: Clock, make_lease: MakeLease) -> None:
    """They go on for a while without their driver; a server of Spark Connect does so by design."""
    driver = make_lease(folder, clock, died_here())
    driver.acquire()
    driver.lend()
    with pytest.raises(LeaseHeld):
        make_lease(folder, clock).acquire()
    clock.pass_s((120_000 + 30_000) / 1000 + 1)
    if make_lease is far:
        with pytest.raises(LeaseHeld):
            far(folder, clock).acquire()


def test_on_one_machine_no_clock_differs_from_itself(folder: str, clock: Clock) -> None:
    """A container that was stopped and started again cannot see that the one before it is gone, but has its clock."""
    host, pid, home, started, token = this_process().rsplit(":", 4)
    far(folder, clock, f"{host}:{pid}:{home}-other-namespace:{started}:{token}").acquire()
    clock.pass_s(150)
    with pytest.raises(LeaseHeld, match="2027-01-15 08:02:30 UTC"):
        far(folder, clock).acquire()
    clock.pass_s(0.001)
    far(folder, clock).acquire()


def test_a_claim_of_another_boot_is_judged_by_the_walls_clock(
    folder: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    far(folder, clock).acquire()
    monkeypatch.setattr(lease_module, "boot", lambda: "another/1")
    clock.pass_s(151)
    with pytest.raises(LeaseHeld):
        far(folder, clock).acquire()
    clock.pass_s(600)
    far(folder, clock).acquire()


def test_a_machine_that_was_suspended_with_its_clock_set_back_sends_nothing(folder: str, clock: Clock) -> None:
    """Neither of the other two clocks shows it, and by the third another process has taken over."""
    holder = make(folder, clock)
    holder.acquire()
    clock.suspend_s(600)
    clock.wall_ms -= 600_000
    with pytest.raises(LeaseHeld):
        holder.check()


def test_a_process_that_was_killed_is_gone_before_its_parent_asks_how(tmp_path: Path) -> None:
    script = "from firnline.journal.lease import this_process; print(this_process(), flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    owner = child.stdout.readline().strip()
    assert not is_certainly_gone(owner)
    child.kill()
    deadline = time.monotonic() + 10
    while not is_certainly_gone(owner) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert is_certainly_gone(owner)
    child.communicate()
    assert is_certainly_gone(owner)


@pytest.mark.parametrize("owner", ["host:1:aa", "", "h:1:::aa", "h:x:home:12:aa"])
def test_nothing_is_certain_of_a_process_elsewhere(owner: str) -> None:
    assert not is_certainly_gone(owner)


def test_a_process_that_lives_is_not_gone_and_a_number_used_again_is_another_process() -> None:
    mine = this_process()
    assert not is_certainly_gone(mine)
    host, pid, home, started, token = mine.rsplit(":", 4)
    assert is_certainly_gone(f"{host}:{pid}:{home}:{int(started) - 1}:{token}")
    assert not is_certainly_gone(f"{host}:{pid}:another-boot/1:{int(started) - 1}:{token}")
