"""Which tables come first, and that each has its turn where no window is long enough for all of them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from firnline.model.times import DAY_MS, HOUR_MS
from firnline.policy.worker.keys import WorkerPolicy
from firnline.worker.memory import Memory, Remembered
from firnline.worker.schedule import begun, by_need, is_due, looked

NOW = 1_000 * DAY_MS
POLICY = WorkerPolicy(every_ms=HOUR_MS)


def memory(**tables: Remembered) -> Memory:
    found = Memory(Path("nowhere"))
    found.tables.update(tables)
    return found


def test_those_that_make_most_garbage_come_first_and_of_equals_the_one_that_waits_longest() -> None:
    known = memory(
        quiet=Remembered(NOW - 3 * HOUR_MS, waits_ms=HOUR_MS),
        calm=Remembered(NOW - 2 * HOUR_MS, waits_ms=HOUR_MS),
        busy=Remembered(NOW - HOUR_MS, waits_ms=HOUR_MS, bytes_per_hour=1e9),
    )
    assert by_need(known.tables, known, NOW) == ["busy", "quiet", "calm"]


def test_one_that_was_passed_over_for_a_day_comes_before_all_others() -> None:
    known = memory(
        busy=Remembered(NOW - HOUR_MS, waits_ms=HOUR_MS, bytes_per_hour=1e9),
        quiet=Remembered(NOW - HOUR_MS - DAY_MS, waits_ms=HOUR_MS),
        never=Remembered(),
    )
    assert by_need(known.tables, known, NOW) == ["never", "quiet", "busy"]


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=12), st.integers(1, 3))
def test_where_windows_are_too_short_each_table_has_its_turn(rates: list[float], at_a_time: int) -> None:
    """A window a day, in which so many tables are done; each makes garbage at a rate of its own, all the time."""
    known = memory(**{f"t{number}": Remembered() for number in range(len(rates))})
    last = dict.fromkeys(known.tables, 0)
    days = 4 * len(rates)
    for day in range(days):
        now = NOW + day * DAY_MS
        due = [name for name in known.tables if is_due(known.of(name), POLICY, now)]
        for name in by_need(due, known, now)[:at_a_time]:
            released = int(rates[int(name[1:])] * 24)
            known.tables[name] = looked(known.of(name), POLICY, now, released, snapshots=1)
            assert day - last[name] <= len(rates) + 1
            last[name] = day
    assert min(last.values()) >= days - len(rates) - 1


def test_one_that_no_window_is_long_enough_for_keeps_no_other_waiting() -> None:
    """It is cut off each night, and never done; of the others one is done in what is left of a window."""
    known = memory(huge=Remembered(), **{f"t{number}": Remembered() for number in range(4)})
    done: list[str] = []
    for day in range(10):
        now = NOW + day * DAY_MS
        due = [name for name in known.tables if is_due(known.of(name), POLICY, now)]
        for name in by_need(due, known, now):
            known.tables[name] = begun(known.of(name), now)
            if name == "huge":
                break
            known.tables[name] = looked(known.of(name), POLICY, now, 0, snapshots=1)
            done.append(name)
    assert set(done) == {"t0", "t1", "t2", "t3"}
    assert done.count("t0") > 2
