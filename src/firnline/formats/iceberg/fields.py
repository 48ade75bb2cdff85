"""Typed access to a document's fields. A field of the wrong shape stops the run and is named."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from firnline.errors import UnreadableMetadata

Fields = Mapping[str, Any]

SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1
_LONG = re.compile(r"[+-]?[0-9]{1,64}")
"""What Java reads as a long; Python's own `int` also takes spaces and underscores."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def damaged(where: str, problem: str) -> UnreadableMetadata:
    return UnreadableMetadata(f"metadata is damaged: {where}: {problem}", hint="nothing was changed")


def text(fields: Fields, name: str, where: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise damaged(where, f"{name} is {value!r}, not a text")
    if not is_text(value):
        raise damaged(where, f"{name} is {value!r}, which has half a character")
    return value


def is_text(value: str) -> bool:
    """Tells whether there is no half of a character in it, which JSON can write."""
    return _SURROGATE.search(value) is None


def whole(fields: Fields, name: str, where: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise damaged(where, f"{name} is {value!r}, not a whole number")
    if not SMALLEST <= value <= LARGEST:
        raise damaged(where, f"{name} is larger than 64 bits hold")
    return value


def size(fields: Fields, name: str, where: str) -> int:
    value = whole(fields, name, where)
    if value < 0:
        raise damaged(where, f"{name} is {value}, less than nothing")
    return value


def whole_or_none(fields: Fields, name: str, where: str) -> int | None:
    return None if fields.get(name) is None else whole(fields, name, where)


def objects(fields: Fields, name: str, where: str) -> list[Fields]:
    """Returns the list of JSON objects under `name`; a field that is absent or null is an empty list."""
    value = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise damaged(where, f"{name} is not a list of objects")
    return value


def mapping(fields: Fields, name: str, where: str) -> Fields:
    value = fields.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise damaged(where, f"{name} is not an object")
    return value


def properties_of(document: Fields, where: str = "") -> dict[str, str]:
    """Returns the table's properties as texts. A number or a flag is what it would be as one.

    Java writes and reads nothing but texts; other writers' numbers must not stop a reader half-way.
    """
    found = mapping(document, "properties", where)
    return {name: _as_text(name, value, where) for name, value in found.items()}


def _as_text(name: str, value: Any, where: str) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, list | dict):
        raise damaged(where, f"property {name} is {json.dumps(value)[:80]}, not a text")
    return json.dumps(value)


def property_number(properties: Mapping[str, str], name: str, default: int, where: str) -> int:
    """Returns a numeric table property. A text that is no number stops the run: a guess would be a policy."""
    value = properties.get(name)
    if value is None:
        return default
    if not _LONG.fullmatch(value) or not SMALLEST <= int(value) <= LARGEST:
        raise damaged(where, f"property {name} is {value!r}, not a whole number")
    return int(value)
