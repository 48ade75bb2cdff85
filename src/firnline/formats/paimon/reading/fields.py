"""Typed access to what Paimon writes as JSON. A field of the wrong shape stops the run and is named."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from firnline.errors import UnreadableMetadata
from firnline.model.times import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

Fields = Mapping[str, Any]

_PLAIN_NAME = re.compile(r"[^/\x00\ud800-\udfff]+")
_DURATION = re.compile(r"\s*([0-9]{1,15})\s*([a-zµ]*)\s*")
_UNITS = {
    **dict.fromkeys(("d", "day", "days"), DAY_MS),
    **dict.fromkeys(("h", "hour", "hours"), HOUR_MS),
    **dict.fromkeys(("m", "min", "minute", "minutes"), MINUTE_MS),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND_MS),
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
}


def damaged(where: str, problem: str) -> UnreadableMetadata:
    return UnreadableMetadata(f"metadata is damaged: {where}: {problem}", hint="nothing was changed")


def parse(text: str, where: str) -> Fields:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as damage:
        raise damaged(where, str(damage)) from damage
    if not isinstance(found, dict):
        raise damaged(where, "it is not a JSON object")
    return found


def whole(fields: Fields, name: str, where: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 63) <= value < 1 << 63:
        raise damaged(where, f"{name} is {value!r}, not a whole number")
    return value


def whole_or_none(fields: Fields, name: str, where: str) -> int | None:
    return None if fields.get(name) is None else whole(fields, name, where)


def file_name(fields: Fields, name: str, where: str) -> str:
    """Returns the name of a file. One with a slash, or `..`, would name a file somewhere else; no name has half of a
    character in it, which JSON can write.
    """
    value = fields.get(name)
    if not isinstance(value, str) or not _PLAIN_NAME.fullmatch(value) or value in (".", ".."):
        raise damaged(where, f"{name} is {value!r}, not the name of a file")
    return value


def file_name_or_none(fields: Fields, name: str, where: str) -> str | None:
    return None if fields.get(name) is None else file_name(fields, name, where)


def texts(fields: Fields, name: str, where: str) -> dict[str, str]:
    """Returns a mapping from text to text; absent or null is an empty one."""
    value = fields.get(name) or {}
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise damaged(where, f"{name} is not a mapping of texts")
    return dict(value)


def duration_ms(text: str, option: str, where: str) -> int:
    """Returns a duration as Paimon's options write it: a number and a unit, milliseconds where there is none."""
    match = _DURATION.fullmatch(text.lower())
    if match is None or match[2] not in _UNITS:
        raise damaged(where, f"the option {option} is {text!r}, not a duration")
    return int(match[1]) * _UNITS[match[2]]


def count(options: Mapping[str, str], option: str, default: int, where: str) -> int:
    text = options.get(option)
    if text is None:
        return default
    if not re.fullmatch(r"-?[0-9]{1,18}", text.strip()):
        raise damaged(where, f"the option {option} is {text!r}, not a whole number")
    return int(text)


def flag(options: Mapping[str, str], option: str, default: bool, where: str) -> bool:
    text = options.get(option)
    if text is None:
        return default
    if text.strip().lower() not in ("true", "false"):
        raise damaged(where, f"the option {option} is {text!r}, neither true nor false")
    return text.strip().lower() == "true"
