"""Holds as a table carries them: one property each, which every engine keeps and shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from firnline.errors import UsageError
from firnline.foreign import json_of
from firnline.model.holds import Hold
from firnline.model.times import format_instant, parse_instant

HOLD_PREFIX = "firnline.hold."
_FIELDS = frozenset({"who", "why", "snapshot", "until"})
_SHOWN = 80
"""Letters of a hold that cannot be read: enough to guess whose it is."""


def parse_holds(properties: Mapping[str, str]) -> tuple[Hold, ...]:
    """Returns the holds of a table, by name. One that cannot be read is a hold on the whole table, with its damage:
    what it protects is unknown, so nothing may go; and yet it must be possible to look at it and to release it.
    """
    keys = sorted(key for key in properties if key.startswith(HOLD_PREFIX))
    return tuple(_parse(key, properties[key]) for key in keys)


def unreadable(holds: Iterable[Hold]) -> str | None:
    """Returns why nothing may go, where a hold cannot be read; None where all can."""
    damaged = next((hold for hold in holds if hold.damage), None)
    if damaged is None:
        return None
    return f"the hold in table property {HOLD_PREFIX}{damaged.name} cannot be read: {damaged.damage}"


def last_over_ms(holds: Iterable[Hold], now_ms: int) -> int | None:
    """Returns when the last of the holds ended that are over at that instant; None where none is. Up to that end
    another clock would say otherwise.
    """
    return max(
        (each.until_ms for each in holds if each.until_ms is not None and not each.in_force(now_ms)), default=None
    )


def format_hold(hold: Hold) -> tuple[str, str]:
    """Returns the property's key and value, which parse_holds reads back to an equal hold."""
    until = None if hold.until_ms is None else format_instant(hold.until_ms)
    fields = {"who": hold.who, "why": hold.why, "snapshot": hold.snapshot, "until": until}
    return HOLD_PREFIX + hold.name, json_of(fields)


def _parse(key: str, text: str) -> Hold:
    name = key.removeprefix(HOLD_PREFIX)
    try:
        return _hold(name, json.loads(text))
    except (ValueError, RecursionError, UsageError) as error:
        return Hold(name, "", "", None, damage=f"{error}; it says {text[:_SHOWN]!r}")


def _hold(name: str, fields: Any) -> Hold:
    if not name or not isinstance(fields, dict):
        raise ValueError("a hold is a name and a JSON object with who, why, snapshot and until")
    if strange := sorted(fields.keys() - _FIELDS):
        raise ValueError(f"unknown field {strange[0]!r}")
    if "snapshot" not in fields:
        raise ValueError("snapshot is missing (null holds the whole table)")
    return Hold(name, _text(fields, "who"), _text(fields, "why"), _snapshot(fields), _until(fields.get("until")))


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key} is missing or not a text")
    return value


def _snapshot(fields: Mapping[str, Any]) -> str | None:
    return None if fields["snapshot"] is None else _text(fields, "snapshot")


def _until(value: Any) -> int | None:
    if value is None:
        return None
    # A bare number could be a date such as 20270101 as well as milliseconds; one of the two ended in 1970.
    if not isinstance(value, str) or value.strip().lstrip("-").isdigit():
        raise ValueError("until must be ISO 8601 with a zone, or null")
    return parse_instant(value)
