"""Partition values as the folder names that Paimon makes of them."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal

from firnline.formats.paimon.rows import Value
from firnline.formats.paimon.schema import Type
from firnline.model.times import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

DEFAULT_NAME = "__DEFAULT_PARTITION__"
_ESCAPED = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{}\\[\\]^]")
_DAY_ONE = date(1970, 1, 1)
_JAVA_SPACES = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a\u2028\u2029"
    "\u205f\u3000"
)
"""What Java takes for white space: not the spaces at which no line may break, which Python takes for it too."""
_DAYS_OF_CYCLE, _YEARS_OF_CYCLE = 146_097, 400
"""After so many days, which are so many years, the calendar begins anew."""
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
    return None if text is None or not text.strip(_JAVA_SPACES) else text


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
        return _decimal(value, kind.second or 0)
    return str(value) if legacy or kind.name not in _SQL else _SQL[kind.name](value, kind)


def _decimal(unscaled: int, scale: int) -> str:
    """Returns a decimal without an exponent, with all of its digits: Python's own decimals round beyond 28 of them."""
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    whole, fraction = (digits[:-scale], f".{digits[-scale:]}") if scale else (digits, "")
    return f"{'-' if unscaled < 0 else ''}{whole}{fraction}"


def _calendar(days: int) -> tuple[int, str]:
    """Returns the year of a day since 1970, which Python's dates may not reach, and its month and day as text."""
    cycles, rest = divmod(days, _DAYS_OF_CYCLE)
    day = _DAY_ONE + timedelta(days=rest)
    return day.year + cycles * _YEARS_OF_CYCLE, f"{day:-%m-%d}"


def _sql_year(year: int) -> str:
    """Returns a year as Paimon's casts write it: the last four digits, each on its own, so that before the year 0 there
    are signs in their place.
    """
    shown = (math.trunc(math.fmod(int(year / power), 10)) for power in (1000, 100, 10, 1))
    return "".join(chr(ord("0") + digit) for digit in shown)


def _java_year(year: int) -> str:
    """Returns a year as Java's own dates write it: at least four digits, and a sign where there are more."""
    return f"+{year}" if year > _LAST_PLAIN_YEAR else f"{'-' if year < 0 else ''}{abs(year):04d}"


_LAST_PLAIN_YEAR = 9999


def _date(days: int, kind: Type) -> str:
    year, rest = _calendar(days)
    return _sql_year(year) + rest


def _time(ms: int, kind: Type) -> str:
    """Returns a time with as many digits of the fraction as it needs, at least one where the type has any."""
    clock = f"{ms // HOUR_MS:02d}:{ms // MINUTE_MS % 60:02d}:{ms // SECOND_MS % 60:02d}"
    shown = f"{ms % SECOND_MS:03d}"[: kind.first or 0]
    return f"{clock}.{shown.rstrip('0') or '0'}" if shown else clock


_SQL: dict[str, Callable[[int, Type], str]] = {"DATE": _date, "TIME": _time}


def _instant(value: tuple[int, int], kind: Type, legacy: bool) -> str:
    """Returns a timestamp: Java leaves out seconds that are zero, SQL writes as many digits as the type has."""
    ms, nanos = value
    nanos += ms % SECOND_MS * 1_000_000
    year, day = _calendar(ms // DAY_MS)
    minute = f"{ms // HOUR_MS % 24:02d}:{ms // MINUTE_MS % 60:02d}"
    second = f":{ms // SECOND_MS % 60:02d}"
    if not legacy:
        digits = 6 if kind.first is None else kind.first
        return f"{_sql_year(year)}{day} {minute}{second}" + _fraction(nanos, digits)
    text = f"{_java_year(year)}{day}T{minute}"
    if nanos:
        digits = next(each for each in (3, 6, 9) if nanos % 10 ** (9 - each) == 0)
        return f"{text}{second}.{nanos:09d}"[: len(text) + 4 + digits]
    return text + (second if second != ":00" else "")


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
