"""The throttle never exceeds its budget, gives way when asked, and comes back."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Barrier, Lock
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.policy.limits import LARGEST_BATCH, StoreLimits
from firnline.policy.parse import parse_policy
from firnline.stores import throttle as throttling
from firnline.stores.throttle import DEFAULTS, Lane, Lanes, LocalBudget, Throttle, prefix_of
from harness.curves import WatchedThrottle

PREFIX = "s3://b/lake"
KEYS_PER_SECOND = DEFAULTS["s3"].deletes
LANE = Lane(f"deletes {PREFIX}", KEYS_PER_SECOND)


@dataclass
class Ticking:
    """A clock that only moves when somebody waits."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Sender:
    """Sends as fast as it is let, and remembers when and how much."""

    throttle: WatchedThrottle
    clock: Ticking
    lane: Lane = LANE
    sent: list[tuple[float, int]] = field(default_factory=list)

    def send(self, keys: int) -> None:
        self.clock.now += self.throttle.reserve(self.lane, keys)
        self.sent.append((self.clock.now, keys))


def sender(rate: float = KEYS_PER_SECOND) -> Sender:
    clock = Ticking()
    return Sender(WatchedThrottle(budget=LocalBudget(clock=clock), clock=clock), clock, LANE._replace(rate=rate))


batches = st.lists(st.integers(1, LARGEST_BATCH), min_size=1, max_size=60)
events = st.lists(st.sampled_from(["ok", "slow", "rest"]), min_size=1, max_size=60)


@given(batches, st.sampled_from([100.0, 1_000.0, KEYS_PER_SECOND]), events)
def test_no_window_of_time_sees_more_than_the_budget(sizes: list[int], rate: float, said: list[str]) -> None:
    under_test = sender(rate)
    for number, size in enumerate(sizes):
        under_test.send(size)
        match said[number % len(said)]:
            case "ok":
                under_test.throttle.went_well(under_test.lane)
            case "slow":
                under_test.throttle.slowed(under_test.lane)
            case _:
                under_test.clock.now += 0.7
    for start, (begin, _) in enumerate(under_test.sent):
        total = 0
        for at, keys in under_test.sent[start:]:
            # What was sent before `at` had its time; one request may be under way at either end.
            assert total <= rate * (at - begin) + 1e-6
            total += keys


@given(events)
def test_rate_and_size_stay_within_their_bounds(said: list[str]) -> None:
    under_test = sender()
    for word in said:
        under_test.clock.now += 0.4
        under_test.throttle.slowed(LANE) if word == "slow" else under_test.throttle.went_well(LANE)
    for moment in under_test.throttle.curve:
        assert KEYS_PER_SECOND / 16 <= moment.rate <= KEYS_PER_SECOND
        assert 10 <= moment.batch <= LARGEST_BATCH


def test_slow_down_halves_once_for_requests_of_the_same_moment() -> None:
    under_test = sender()
    for _ in range(8):
        under_test.throttle.slowed(LANE)
    assert [moment.event for moment in under_test.throttle.curve] == ["halved"] + ["slow down"] * 7
    assert under_test.throttle.curve[-1].rate == KEYS_PER_SECOND / 2
    assert under_test.throttle.batch(LANE) == 125
    under_test.clock.now += 1.1
    under_test.throttle.slowed(LANE)
    assert under_test.throttle.curve[-1].rate == KEYS_PER_SECOND / 4


def test_it_comes_back_by_small_steps() -> None:
    under_test = sender()
    under_test.throttle.slowed(LANE)
    rates = []
    for _ in range(60):
        under_test.throttle.went_well(LANE)
        rates.append(under_test.throttle.curve[-1].rate)
    steps = {round(later - earlier, 6) for earlier, later in pairwise(rates)}
    assert steps == {KEYS_PER_SECOND / 100, 0.0}
    assert rates[-1] == KEYS_PER_SECOND
    assert under_test.throttle.batch(LANE) == LARGEST_BATCH


def test_a_prefix_that_is_asked_to_slow_down_slows_nobody_else() -> None:
    under_test = sender()
    under_test.throttle.slowed(LANE)
    under_test.throttle.went_well(LANE._replace(name="deletes s3://b/other"))
    assert under_test.throttle.curve[-1].rate == KEYS_PER_SECOND


def test_shares_add_up_to_the_whole() -> None:
    clock = Ticking()
    copies = [pickle.loads(pickle.dumps(Throttle().share(4))) for _ in range(4)]
    assert sum(copy.budget.part for copy in copies) == 1.0
    one, lane = Throttle(budget=LocalBudget(clock=clock), clock=clock).share(4), LANE._replace(rate=1_000.0)
    assert [one.reserve(lane, 250) for _ in range(3)] == [0.0, 1.0, 2.0]
    assert one.batch(lane) == 250, "no request brings more than a second does"


def lanes(text: str) -> Lanes:
    return Lanes(StoreLimits.of(parse_policy(text).stores))


def test_where_nothing_was_said_buckets_have_a_pace_and_local_files_have_none() -> None:
    usual = Lanes()
    assert usual.deletes("s3a://b/lake/t/data") == LANE
    assert usual.reads("gs://b/lake/t") == Lane("reads gs://b/lake", 5_000.0)
    assert usual.deletes("abfss://c@account.dfs.core.windows.net/lake/t").rate == 2_500.0
    assert usual.reads("/lake/t").is_free
    assert usual.deletes("memory://x/t").is_free


def test_each_limit_comes_from_the_most_specific_place_that_has_it() -> None:
    found = lanes(
        """
        stores:
          s3://b: {reads-per-second: 100, deletes-per-second: 10, deletes-at-once: 2}
          s3a://b/lake/: {deletes-per-second: 20, delete-batch: 7}
          /disk: {reads-at-once: 3}
        """
    )
    assert found.reads("s3://b/lake/t") == found.reads("s3://b") == Lane("reads s3://b/", 100)
    assert found.deletes("s3://b/lake/t") == Lane("deletes s3://b/lake/", 20, (2, "deletes s3://b/"), 7)
    assert found.deletes("s3://b/lakes/t") == Lane("deletes s3://b/", 10, (2, "deletes s3://b/"))
    assert found.deletes("s3://b2/lake/t").rate == KEYS_PER_SECOND
    assert found.reads("file:///disk/t").at_once == (3, "reads file:///disk/")
    assert found.deletes("/disk/t").is_free


def test_a_line_that_was_said_is_shared_by_all_that_lies_there() -> None:
    clock = Ticking()
    throttle = Throttle(lanes("stores: {s3://b: {reads-per-second: 10}}"), LocalBudget(clock=clock), clock)
    assert throttle.reserve(throttle.reads("s3://b/one/t"), 5) == 0.0
    assert throttle.reserve(throttle.reads("s3://b/two/t"), 1) == 0.5


def test_no_more_are_under_way_than_was_said_and_of_parts_each_has_its_own() -> None:
    throttle = Throttle(lanes("stores: {/disk: {reads-at-once: 4}}"))
    for one, most in ((throttle, 4), (throttle.share(2), 2), (throttle.share(9), 1)):
        assert most_at_once(pickle.loads(pickle.dumps(one))) == most


def most_at_once(throttle: Throttle) -> int:
    """Returns how many of eight threads were ever in their turn together."""
    inside, most, lock, together = 0, 0, Lock(), Barrier(8)

    def work(_: int) -> None:
        nonlocal inside, most
        together.wait()
        for _ in range(20):
            with throttle.asking(throttle.reads("/disk/t")):
                with lock:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0.0005)
                with lock:
                    inside -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    return most


def test_a_listing_waits_for_what_it_brought(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking()
    monkeypatch.setattr(throttling, "time", SimpleNamespace(sleep=clock.wait))
    throttle = Throttle(lanes("stores: {/disk: {reads-per-second: 1}}"), LocalBudget(clock=clock), clock)
    lane = throttle.reads("/disk/t")
    assert list(throttle.listing(lane, iter([10_000, 500, 600]), lambda page: page)) == [10_000, 500, 600]
    assert clock.now == 11.0, "one for the first answer, ten for the next ten thousand; the last is not awaited"


def test_a_request_brings_no_more_than_was_said() -> None:
    throttle = Throttle(lanes("stores: {s3://b: {delete-batch: 7}, s3://slow: {deletes-per-second: 3}}"))
    for _ in range(100):
        for bucket in ("s3://b", "s3://slow", "s3://other"):
            throttle.went_well(throttle.deletes(bucket))
    assert [throttle.batch(throttle.deletes(each)) for each in ("s3://b", "s3://slow", "s3://other")] == [7, 3, 1_000]


def test_a_bucket_and_its_first_folder_share_a_budget() -> None:
    assert prefix_of("s3a://b/lake/ns/t/data") == PREFIX
    assert prefix_of("s3://b/other") == "s3://b/other"
