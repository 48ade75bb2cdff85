"""Partition values, from the binary row in which manifests carry them to the folder names that Paimon makes of them.

Four bytes say how many fields there are (big end first); then the row itself, small end first: a bit for each null
after eight bits of header, then eight bytes for each field. What does not fit lies behind, at an offset.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal

from firnline.errors import UnreadableMetadata, UnsupportedFormat
from firnline.formats.paimon.reading.schema import Type
from firnline.model.times import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

Value = bool | int | float | str | tuple[int, int] | None
"""Timestamps are milliseconds and the nanoseconds within; a decimal is its unscaled number."""

_HEADER_BITS = 8
_COMPACT_DIGITS, _COMPACT_FRACTION = 18, 3
_TEXTS = ("STRING", "VARCHAR", "CHAR")
_PLAIN: dict[str, str] = {
    "BOOLEAN": "<?", "TINYINT": "<b", "SMALLINT": "<h", "INT": "<i", "INTEGER": "<i", "DATE": "<i", "TIME": "<i",
    "BIGINT": "<q", "FLOAT": "<f", "DOUBLE": "<d",
}  # fmt: skip


def partition_values(data: bytes, types: tuple[Type, ...]) -> tuple[Value, ...]:
    """Returns the values, None where one is null. Raises UnreadableMetadata where the bytes are no such row."""
    try:
        (arity,) = struct.unpack_from(">i", data)
        if arity != len(types):
            raise UnreadableMetadata(f"a partition has {arity} fields, the schema {len(types)}", hint=_HINT)
        return tuple(_value(data[4:], place, kind, len(types)) for place, kind in enumerate(types))
    except (struct.error, UnicodeDecodeError, IndexError) as damage:
        raise UnreadableMetadata(f"a partition is no binary row: {damage}", hint=_HINT) from damage


_HINT = "nothing was changed"


def _value(row: bytes, place: int, kind: Type, arity: int) -> Value:
    bit = place + _HEADER_BITS
    if row[bit // 8] >> (bit % 8) & 1:
        return None
    slot = (arity + _HEADER_BITS + 63) // 64 * 8 + place * 8
    reader = _reader(kind)
    return reader(row, slot)


def _reader(kind: Type) -> Callable[[bytes, int], Value]:
    if kind.name in _TEXTS:
        return lambda row, slot: _bytes(row, slot).decode()
    if kind.name in _PLAIN:
        return lambda row, slot: _plain(_PLAIN[kind.name], row, slot)
    if kind.name == "DECIMAL":
        return lambda row, slot: _unscaled(row, slot, kind.first or 10)
    if kind.name == "TIMESTAMP":
        return lambda row, slot: _timestamp(row, slot, 6 if kind.first is None else kind.first)
    raise UnsupportedFormat(f"a partition key of the type {kind.name} is not understood", hint=_HINT)


def _plain(layout: str, row: bytes, slot: int) -> Value:
    value: Value = struct.unpack_from(layout, row, slot)[0]
    return value


def _bytes(row: bytes, slot: int) -> bytes:
    """Returns a text of up to seven bytes from its slot, a longer one from where the slot points."""
    if row[slot + 7] & 0x80:
        return row[slot : slot + (row[slot + 7] & 0x7F)]
    size, offset = struct.unpack_from("<ii", row, slot)
    if size < 0 or offset < 0 or offset + size > len(row):
        raise IndexError("a text lies outside of it")
    return row[offset : offset + size]


def _unscaled(row: bytes, slot: int, precision: int) -> int:
    if precision <= _COMPACT_DIGITS:
        return int(struct.unpack_from("<q", row, slot)[0])
    return int.from_bytes(_bytes(row, slot), "big", signed=True)


def _timestamp(row: bytes, slot: int, precision: int) -> tuple[int, int]:
    if precision <= _COMPACT_FRACTION:
        return int(struct.unpack_from("<q", row, slot)[0]), 0
    nanos, offset = struct.unpack_from("<ii", row, slot)
    return int(struct.unpack_from("<q", row, offset)[0]), nanos


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
