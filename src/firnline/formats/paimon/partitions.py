"""Partition values as the folder names that Paimon makes of them."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from firnline.formats.paimon.rows import Value
from firnline.formats.paimon.schema import Type
from firnline.model.times import HOUR_MS, MINUTE_MS, SECOND_MS

DEFAULT_NAME = "__DEFAULT_PARTITION__"
_ESCAPED = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{}\\[\\]^]")
_DAY_ONE = date(1970, 1, 1)
_FLOAT_DIGITS = {"FLOAT": 9, "DOUBLE": 17}


def folder_name(key: str, value: str) -> str:
    return f"{escaped(key)}={escaped(value)}"


def escaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def value_text(value: Value, kind: Type, legacy: bool) -> str | None:
    """Returns a value as it stands in a folder's name; None where the default name stands for it.

    `legacy` is Java's own text of what is stored (a date is its number of days); else it is SQL's.
    """
    text = None if value is None else _written(value, kind, legacy)
    return None if text is None or not text.strip() else text


def _written(value: Value, kind: Type, legacy: bool) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return java_number(value, kind.name)
        case tuple():
            return _instant(value, kind, legacy)
        case int():
            return _whole(value, kind, legacy)
        case _:
            return str(value)


def _whole(value: int, kind: Type, legacy: bool) -> str:
    if kind.name == "DECIMAL":
        return f"{Decimal(value).scaleb(-(kind.second or 0)):f}"
    return str(value) if legacy or kind.name not in _SQL else _SQL[kind.name](value, kind)


def _date(days: int, kind: Type) -> str:
    return (_DAY_ONE + timedelta(days=days)).isoformat()


def _time(ms: int, kind: Type) -> str:
    clock = f"{ms // HOUR_MS:02d}:{ms // MINUTE_MS % 60:02d}:{ms // SECOND_MS % 60:02d}"
    fraction = _fraction(ms % SECOND_MS * 1_000_000, kind.first or 0)
    return clock + fraction


_SQL: dict[str, Callable[[int, Type], str]] = {"DATE": _date, "TIME": _time}


def _instant(value: tuple[int, int], kind: Type, legacy: bool) -> str:
    """Returns a timestamp: Java leaves out seconds that are zero, SQL writes as many digits as the type has."""
    ms, nanos = value
    moment = datetime.fromtimestamp(ms // SECOND_MS, UTC)
    nanos += ms % SECOND_MS * 1_000_000
    if not legacy:
        digits = 6 if kind.first is None else kind.first
        return f"{moment:%Y-%m-%d %H:%M:%S}" + _fraction(nanos, digits)
    text = f"{moment:%Y-%m-%dT%H:%M}"
    if nanos:
        digits = next(each for each in (3, 6, 9) if nanos % 10 ** (9 - each) == 0)
        return f"{text}:{moment.second:02d}.{nanos:09d}"[: len(text) + 4 + digits]
    return f"{text}:{moment.second:02d}" if moment.second else text


def _fraction(nanos: int, digits: int) -> str:
    """Returns the fraction of a second, with at least so many digits and no zeros behind them."""
    text = f"{nanos:09d}"
    while len(text) > digits and text.endswith("0"):
        text = text[:-1]
    return f".{text}" if text else ""


def java_number(value: float, kind: str) -> str:
    """Returns a number as Java writes it: the fewest digits that tell it from its neighbours, and E notation outside
    of 0.001 to 10,000,000.
    """
    if not math.isfinite(value):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    sign, digits, exponent = Decimal(_shortest(value, kind)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + int(exponent)
    minus = "-" if sign else ""
    if value == 0:
        return f"{minus}0.0"
    if -3 < point <= 7:
        whole = text[:point].ljust(point, "0") if point > 0 else "0"
        rest = text[point:] if point > 0 else "0" * -point + text
        return f"{minus}{whole}.{rest or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"


def _shortest(value: float, kind: str) -> str:
    """Returns the fewest digits that read back as the same number of this width."""
    if kind == "DOUBLE":
        return repr(value)

    for digits in range(1, _FLOAT_DIGITS["FLOAT"] + 1):
        text = f"{value:.{digits - 1}e}"
        if struct.unpack("<f", struct.pack("<f", float(text)))[0] == value:
            return text
    return repr(value)
