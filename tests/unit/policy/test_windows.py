"""Quiet windows: what is open when, over midnight, in any time zone, and where clocks are put forward or back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import PolicyError
from firnline.policy.parse import parse_policy
from firnline.policy.worker.keys import WorkerPolicy, worker_policy
from firnline.policy.worker.windows import Window, parse_window

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "Australia/Lord_Howe")
_MINUTE = st.integers(0, 24 * 60 - 1).map(lambda each: f"{each // 60:02}:{each % 60:02}")
_INSTANTS = st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))


def at(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def window(text: str) -> Window:
    found = parse_window(text)
    assert found is not None
    return found


@given(_MINUTE, _MINUTE, st.sampled_from(ZONES), _INSTANTS)
def test_it_is_open_in_the_hours_of_its_zone(start: str, end: str, zone: str, moment: datetime) -> None:
    if start == end:
        return
    found, now = window(f"{start}-{end} {zone}"), at(moment)
    local = f"{moment.astimezone(ZoneInfo(zone)):%H:%M}"
    inside = start <= local < end if start < end else local >= start or local < end
    shifts = {(moment + timedelta(hours=each)).astimezone(ZoneInfo(zone)).utcoffset() for each in range(-26, 27)}
    if len(shifts) == 1:  # no clock is put forward or back around it
        assert (found.closes_ms(now) is not None) == inside
    opens = found.opens_ms(now)
    closes = found.closes_ms(opens)
    assert now <= opens <= now + 49 * 3_600_000
    assert closes is not None
    assert closes > opens


def test_a_night_in_which_clocks_are_put_back_is_an_hour_longer() -> None:
    found, evening = window("22:00-06:00 Europe/Berlin"), datetime(2026, 10, 24, 20, tzinfo=UTC)
    closes = found.closes_ms(at(evening))
    assert closes == at(evening) + 9 * 3_600_000


@pytest.mark.parametrize(
    "text", ["22:00", "24:00-06:00", "22:00-22:00", "22:00-06:00 Europe/Berln", "22:61-06:00", "", "22:00-06:00 ../x"]
)
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(PolicyError):
        parse_window(text)


def test_a_file_says_how_a_worker_works() -> None:
    said = parse_policy("worker:\n  window: 01:00-05:30\n  budget: 35%\n  every: 15m\n  orphans: off\n  at-once: 8\n")
    assert worker_policy(said.worker) == WorkerPolicy(
        window("01:00-05:30 UTC"), 0.35, every_ms=900_000, orphans_ms=None, at_once=8
    )
    assert worker_policy(parse_policy("").worker) == WorkerPolicy()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("budget: 0%", "budget takes a share above 0%"),
        ("window: soon", "firnline.yaml:2: window"),
        ("every: 0s", "less than a second"),
        ("at-once: 0", "not a number from 1"),
        ("hours: 3", "unknown key 'hours'"),
    ],
)
def test_what_a_worker_cannot_do_is_refused_with_its_line(line: str, told: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parse_policy(f"worker:\n  {line}\n")
    assert told in f"{refused.value.message} {refused.value.hint}"
