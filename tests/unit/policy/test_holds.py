"""Holds as table properties: they come back as they were written, or nothing of the table goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.model.holds import Hold
from firnline.policy.holds import format_hold, parse_holds, unreadable

holds = st.builds(
    Hold,
    name=st.text(min_size=1),
    who=st.text(),
    why=st.text(),
    snapshot=st.none() | st.text(),
    until_ms=st.none() | st.integers(0, 4_000_000_000_000),
)


@given(holds)
def test_a_hold_comes_back_as_it_was(hold: Hold) -> None:
    assert parse_holds(dict([format_hold(hold), ("owner", "ann")])) == (hold,)


def test_holds_come_sorted_by_name() -> None:
    names = ["b", "a.c", "a"]
    properties = dict(format_hold(Hold(name, "ann", "audit", None)) for name in names)
    assert [hold.name for hold in parse_holds(properties)] == ["a", "a.c", "b"]


def test_until_may_be_left_out() -> None:
    value = '{"who": "ann", "why": "case 12", "snapshot": "17"}'
    assert parse_holds({"firnline.hold.h": value}) == (Hold("h", "ann", "case 12", "17"),)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("firnline.hold.h", "not json"),
        ("firnline.hold.h", ""),
        ("firnline.hold.h", "[]"),
        ("firnline.hold.h", "[" * 100_000),
        ("firnline.hold.", '{"who": "a", "why": "b", "snapshot": "1"}'),
        ("firnline.hold.h", '{"who": "a", "snapshot": "1"}'),
        ("firnline.hold.h", '{"who": "a", "why": 3, "snapshot": "1"}'),
        ("firnline.hold.h", '{"who": "a", "why": "b"}'),
        ("firnline.hold.h", '{"who": "a", "why": "b", "snapshot": 1}'),
        ("firnline.hold.h", '{"who": "a", "why": "b", "snapshot": "1", "untill": null}'),
        ("firnline.hold.h", '{"who": "a", "why": "b", "snapshot": "1", "until": "2027-01-01T00:00:00"}'),
        ("firnline.hold.h", '{"who": "a", "why": "b", "snapshot": "1", "until": "20270101"}'),
        ("firnline.hold.h", '{"who": "a", "why": "b", "snapshot": "1", "until": 1798761600000}'),
    ],
)
def test_a_hold_that_cannot_be_read_holds_the_whole_table_for_good(key: str, value: str) -> None:
    (hold,) = parse_holds({key: value})
    assert hold.snapshot is None
    assert hold.in_force(2**63)
    assert repr(value[:80]) in hold.damage
    assert key in (unreadable([Hold("other", "ann", "audit", "1"), hold]) or "")
    assert unreadable([Hold("other", "ann", "audit", "1")]) is None
