"""The throttle never exceeds its budget, gives way when asked, and comes back."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import PermanentStoreError
from firnline.stores.keys import object_key
from firnline.stores.throttle import KEYS_PER_SECOND, LARGEST_BATCH, LocalBudget, Throttle, prefix_of
from harness.curves import WatchedThrottle

PREFIX = "s3://b/lake"


@dataclass
class Ticking:
    """A clock that only moves when somebody waits."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Sender:
    """Sends as fast as it is let, and remembers when and how much."""

    throttle: WatchedThrottle
    clock: Ticking
    sent: list[tuple[float, int]] = field(default_factory=list)

    def send(self, keys: int) -> None:
        self.clock.now += self.throttle.reserve(PREFIX, keys)
        self.sent.append((self.clock.now, keys))


def sender(rate: float = KEYS_PER_SECOND) -> Sender:
    clock = Ticking()
    return Sender(WatchedThrottle(LocalBudget(rate, clock), clock), clock)


batches = st.lists(st.integers(1, LARGEST_BATCH), min_size=1, max_size=60)
events = st.lists(st.sampled_from(["ok", "slow", "rest"]), min_size=1, max_size=60)


@given(batches, st.sampled_from([100.0, 1_000.0, KEYS_PER_SECOND]), events)
def test_no_window_of_time_sees_more_than_the_budget(sizes: list[int], rate: float, said: list[str]) -> None:
    under_test = sender(rate)
    for number, size in enumerate(sizes):
        under_test.send(size)
        match said[number % len(said)]:
            case "ok":
                under_test.throttle.went_well(PREFIX)
            case "slow":
                under_test.throttle.slowed(PREFIX)
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
        under_test.throttle.slowed(PREFIX) if word == "slow" else under_test.throttle.went_well(PREFIX)
    for moment in under_test.throttle.curve:
        assert KEYS_PER_SECOND / 16 <= moment.rate <= KEYS_PER_SECOND
        assert 10 <= moment.batch <= LARGEST_BATCH


def test_slow_down_halves_once_for_requests_of_the_same_moment() -> None:
    under_test = sender()
    for _ in range(8):
        under_test.throttle.slowed(PREFIX)
    assert [moment.event for moment in under_test.throttle.curve] == ["halved"] + ["slow down"] * 7
    assert under_test.throttle.curve[-1].rate == KEYS_PER_SECOND / 2
    assert under_test.throttle.batch(PREFIX) == 125
    under_test.clock.now += 1.1
    under_test.throttle.slowed(PREFIX)
    assert under_test.throttle.curve[-1].rate == KEYS_PER_SECOND / 4


def test_it_comes_back_by_small_steps() -> None:
    under_test = sender()
    under_test.throttle.slowed(PREFIX)
    rates = []
    for _ in range(60):
        under_test.throttle.went_well(PREFIX)
        rates.append(under_test.throttle.curve[-1].rate)
    steps = {round(later - earlier, 6) for earlier, later in pairwise(rates)}
    assert steps == {KEYS_PER_SECOND / 100, 0.0}
    assert rates[-1] == KEYS_PER_SECOND
    assert under_test.throttle.batch(PREFIX) == LARGEST_BATCH


def test_a_prefix_that_is_asked_to_slow_down_slows_nobody_else() -> None:
    under_test = sender()
    under_test.throttle.slowed(PREFIX)
    under_test.throttle.went_well("s3://b/other")
    assert under_test.throttle.curve[-1].rate == KEYS_PER_SECOND


def test_shares_add_up_to_the_whole() -> None:
    clock = Ticking()
    copies = [pickle.loads(pickle.dumps(Throttle(LocalBudget(1_000.0).share(4)))) for _ in range(4)]
    assert sum(copy.budget.rate for copy in copies) == 1_000.0
    one = Throttle(LocalBudget(1_000.0, clock).share(4), clock)
    assert [one.reserve(PREFIX, 250) for _ in range(3)] == [0.0, 1.0, 2.0]


def test_the_rate_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Throttle().budget.rate == KEYS_PER_SECOND
    monkeypatch.setenv("FIRNLINE_DELETE_RATE", "500")
    assert Throttle().budget.rate == 500.0
    assert LocalBudget(20.0).rate == 20.0, "what the caller says comes first"


@pytest.mark.parametrize("said", ["0", "-1", "fast", "nan", "inf"])
def test_a_rate_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv("FIRNLINE_DELETE_RATE", said)
    with pytest.raises(PermanentStoreError, match="FIRNLINE_DELETE_RATE"):
        Throttle()


def test_a_bucket_and_its_first_folder_share_a_budget() -> None:
    assert prefix_of(object_key("s3a://b/lake/ns/t/data/x")) == PREFIX
    assert prefix_of(object_key("s3://b/other/x")) == "s3://b/other"
