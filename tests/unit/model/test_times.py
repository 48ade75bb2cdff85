"""Instants and durations: what is read, what is refused, and that both come back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import BadTimestamp, UsageError
from firnline.model.times import (
    LAST_MS,
    MINUTE_MS,
    format_duration,
    format_instant,
    parse_duration,
    parse_instant,
    parse_moment,
    tell_due,
    tell_dues,
    tell_instant,
)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0s", 0),
        ("90s", 90_000),
        ("15m", 900_000),
        ("24h", 86_400_000),
        ("30d", 2_592_000_000),
        ("4w", 2_419_200_000),
        ("1y", 31_536_000_000),
        ("1d12h", 129_600_000),
        (" 7D ", 604_800_000),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "30", "d", "1.5d", "-1d", "1 d", "1d 2h", "1month", "soon", "1d-2h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a duration") as caught:
        parse_duration(text)
    assert "30d" in caught.value.hint


@given(st.integers(0, 10**9))
def test_whole_seconds_come_back(seconds: int) -> None:
    assert parse_duration(format_duration(seconds * 1000)) == seconds * 1000


@pytest.mark.parametrize(("ms", "text"), [(0, "0s"), (5, "5 ms"), (86_400_000, "1d"), (90_061_000, "1d1h1m1s")])
def test_durations_are_written_short(ms: int, text: str) -> None:
    assert format_duration(ms) == text


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-08-22T09:00:00Z", 1_787_389_200_000),
        ("2026-08-22T11:00:00+02:00", 1_787_389_200_000),
        ("2026-08-22 09:00:00.250+00:00", 1_787_389_200_250),
        ("1787389200000", 1_787_389_200_000),
        ("-86400000", -86_400_000),
    ],
)
def test_instants(text: str, ms: int) -> None:
    assert parse_instant(text) == ms


@pytest.mark.parametrize("text", ["2026-08-22T09:00:00", "2026-08-22", "2026-08-22 09:00"])
def test_an_instant_without_a_zone_is_refused(text: str) -> None:
    with pytest.raises(BadTimestamp, match="timestamp without a zone") as caught:
        parse_instant(text)
    assert "with a zone" in caught.value.hint


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01T00:00:00Z", "12", "2026-08-22T25:00Z"])
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(BadTimestamp, match="not a timestamp"):
        parse_instant(text)


@pytest.mark.parametrize("text", ["20260822", "19991231"])
def test_a_date_without_signs_is_not_taken_for_milliseconds(text: str) -> None:
    with pytest.raises(BadTimestamp, match="a date or milliseconds"):
        parse_instant(text)


@pytest.mark.parametrize("text", ["1763510400", " 946684800 ", "4102444799"])
def test_seconds_of_our_times_are_not_taken_for_milliseconds(text: str) -> None:
    with pytest.raises(BadTimestamp, match=text.strip()) as caught:
        parse_instant(text)
    assert "multiply by 1000" in caught.value.hint


@pytest.mark.parametrize("ms", [0, 1, 86_400_000, 946_684_799, 4_102_444_800, -1_763_510_400])
def test_other_instants_near_1970_are_what_they_say(ms: int) -> None:
    assert parse_instant(f"{ms:05d}") == ms


def test_more_digits_than_any_time_has_are_refused() -> None:
    with pytest.raises(BadTimestamp):
        parse_instant("9" * 5000)
    with pytest.raises(UsageError):
        parse_duration("9" * 5000 + "d")


@given(st.integers(-30_610_224_000_000, 253_402_300_799_999))
def test_every_instant_from_the_year_1000_to_9999_comes_back(ms: int) -> None:
    assert parse_instant(format_instant(ms)) == ms


@pytest.mark.parametrize("ms", [2**63 - 1, -(2**63)])
def test_an_instant_outside_the_calendar_is_written_as_its_number(ms: int) -> None:
    assert format_instant(ms) == str(ms)


@pytest.mark.parametrize("text", ["253402300800000", "1787389200000000", "-62135596800001"])
def test_an_instant_that_no_calendar_shows_is_refused(text: str) -> None:
    with pytest.raises(BadTimestamp, match=text):
        parse_instant(text)


@pytest.mark.parametrize(
    ("ms", "text"), [(253402300799999, "9999-12-31T23:59:59.999Z"), (-62135596800000, "0001-01-01T00:00:00.000Z")]
)
def test_the_first_and_last_instants_are_read_back(ms: int, text: str) -> None:
    assert format_instant(ms) == text
    assert parse_instant(str(ms)) == parse_instant(text) == ms


def test_a_large_m_is_asked_back() -> None:
    with pytest.raises(UsageError, match="minutes or months"):
        parse_duration("6M")
    assert parse_duration("6m") == 6 * MINUTE_MS


def test_people_are_told_minutes_and_what_is_waited_for_is_over_by_then() -> None:
    at = parse_instant("2026-11-18T14:00:00.001Z")
    assert (tell_instant(at), tell_due(at)) == ("2026-11-18 14:00 UTC", "2026-11-18 14:01 UTC")
    assert tell_due(at - 1) == "2026-11-18 14:00 UTC"
    assert tell_due(LAST_MS) == "9999-12-31 23:59 UTC"
    assert tell_dues("grace, at 2026-11-18T14:00:00.001Z; x") == "grace, at 2026-11-18 14:01 UTC; x"


def test_what_people_are_told_they_may_type() -> None:
    at = parse_instant("2026-11-18T14:00:00Z")
    assert parse_moment(tell_instant(at)) == at
    with pytest.raises(BadTimestamp):
        parse_moment("2026-11-18 UTC")
