"""From texts to values: one parser per key, the same for files, table properties and flags."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from firnline.errors import PolicyError, UsageError
from firnline.foreign import is_address
from firnline.model.locations import is_dotted
from firnline.model.times import DAY_MS, parse_duration, parse_instant
from firnline.policy.bounds import FOREVER, HistoryBound
from firnline.policy.periods import Period
from firnline.policy.rules import RULE_NAMES, KeepLast, KeepPeriods, KeepTags, KeepWithin, Rule
from firnline.policy.sizes import parse_size

OFF = "off"
ALL = "all"

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_ID = re.compile(r"-?[0-9]{1,19}|[0-9A-Z]{20}|\*")
_INSTANT = re.compile(r"-?[0-9]{4,}(-|$)")
"""How an instant begins: with a year, or with nothing but digits; a duration has a unit after its first number."""
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%")
_LONGEST_TEXT = 64
"""No sensible number or duration is longer; it also keeps Python's limit on digits out of reach."""


def parse_rule(name: str, text: str | Sequence[str], where: str) -> Rule | None:
    """Returns the rule that a text means; None where the text is `off`. `where` begins every error."""
    if text == OFF:
        return None
    try:
        return _RULES[name](text)
    except UsageError as error:
        raise PolicyError(f"{where}: {error.message}", hint=f"{name} takes {ALLOWED[name]}") from None


def parse_setting(name: str, text: str | Sequence[str], where: str) -> Any:
    """Returns the value of a key that is not a rule. `where` begins every error."""
    try:
        return SETTINGS[name](text if name in _LISTS else _one(text))
    except UsageError as error:
        raise PolicyError(f"{where}: {error.message}", hint=f"{name} takes {ALLOWED[name]}") from None


def _one(text: str | Sequence[str]) -> str:
    if isinstance(text, str):
        return text
    raise PolicyError("a list is not allowed here")


def _number(text: str) -> int | None:
    if text == ALL:
        return None
    if not _WHOLE_NUMBER.fullmatch(text):
        raise PolicyError(f"{_shown(text)} is not a number")
    return int(text)


def _duration(text: str) -> int:
    if len(text) > _LONGEST_TEXT:
        raise PolicyError(f"{_shown(text)} is not a duration")
    return parse_duration(text)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…")


def _last(text: str | Sequence[str]) -> Rule:
    return KeepLast(_number(_one(text)))


def _within(text: str | Sequence[str]) -> Rule:
    return KeepWithin(_duration(_one(text)))


def _periods(period: Period) -> Callable[[str | Sequence[str]], Rule]:
    def parse(text: str | Sequence[str]) -> Rule:
        value = _one(text)
        if value == ALL or _WHOLE_NUMBER.fullmatch(value):
            return KeepPeriods(period, count=_number(value))
        return KeepPeriods(period, window_ms=_duration(value))

    return parse


def _tags(text: str | Sequence[str]) -> Rule:
    return KeepTags(_several(text))


def _several(text: str | Sequence[str]) -> tuple[str, ...]:
    patterns = text.split(",") if isinstance(text, str) else text
    return tuple(pattern.strip() for pattern in patterns)


_RULES: dict[str, Callable[[str | Sequence[str]], Rule]] = {
    "last": _last,
    "within": _within,
    **{period.value: _periods(period) for period in Period},
    "tags": _tags,
}


def _records(text: str) -> str:
    if not text:
        raise PolicyError("a location must not be empty")
    return text


def _webhook(text: str) -> str:
    """Returns an address. What is none is not repeated: it may hold a secret."""
    if not is_address(text, "http", "https"):
        raise PolicyError("this is no address of a server")
    return text


def _history(text: str) -> HistoryBound | None:
    """Returns how far back expired snapshots are remembered; None if they are not."""
    if text in (OFF, FOREVER):
        return None if text == OFF else HistoryBound()
    if len(text) <= _LONGEST_TEXT and _INSTANT.match(text.strip()):
        return HistoryBound(after_ms=parse_instant(text))
    return HistoryBound(_duration(text))


def _share(text: str) -> float:
    match = _PERCENT.fullmatch(text)
    if not match or not 0 < float(match[1]) <= 100:
        raise PolicyError(f"{_shown(text)} is not a share of the table")
    return float(match[1]) / 100


def _backups(text: str) -> int | None:
    """Returns for how long backups are kept; None for ever."""
    return None if text == FOREVER else _duration(text)


def _approve_above(text: str) -> int | None:
    """Returns the size from which on a person must approve; None where nobody need."""
    return None if text == OFF else parse_size(text)


def _longest_write(text: str) -> int:
    found = _duration(text)
    if found < SHORTEST_WRITE_MS:
        raise PolicyError(f"{_shown(text)} is less than a day")
    return found


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise PolicyError(f"{_shown(text)} is not one of {', '.join(allowed)}")
        return text

    return parse


def _sharers(text: str | Sequence[str]) -> tuple[str, ...]:
    """Returns names of tables, patterns of them and locations; each says something."""
    names = _several(text)
    if not all(names):
        raise PolicyError("a name of a table must not be empty")
    return names


def _pointers(text: str) -> str | None:
    """Returns how the pointers of a table are named; None where it has none."""
    return None if text == OFF else _one_of("identifier", "ordinal", "uuid")(text)


def _tier(text: str) -> str | None:
    """Returns the tier that expired snapshots are handed to; None where they are handed to none."""
    if not text:
        raise PolicyError("a name of a tier must not be empty")
    return None if text == OFF else text


def _branches(text: str | Sequence[str]) -> tuple[str, ...]:
    """Returns patterns of branches."""
    names = _several(text)
    if not all(names):
        raise PolicyError("a name of a branch must not be empty")
    return names


def is_pattern(location: str) -> bool:
    """Tells whether the last part of a location stands for several folders."""
    return any(each in location.rstrip("/").rpartition("/")[2] for each in "*?[")


def _readers(text: str | Sequence[str]) -> tuple[str, ...]:
    """Returns the locations at which readers leave their checkpoints: whole ones, and patterns of one level; none for
    `off`. Raises PolicyError for a location that is not whole, or has a pattern before its last part.
    """
    if text == OFF:
        return ()
    places = _several(text)
    for each in places:
        if not (each.startswith("/") or "://" in each) or is_dotted(each):
            raise PolicyError(f"{_shown(each)} is not a whole location")
        if is_pattern(each.rstrip("/").rpartition("/")[0].replace("/", "")):
            raise PolicyError(f"{_shown(each)} has a pattern before its last part")
    return places


def _longest_rest(text: str) -> int | None:
    """Returns for how long a reader may stand still; None for ever."""
    return None if text == FOREVER else _duration(text)


def _truth(text: str) -> bool:
    return _one_of("true", "false")(text) == "true"


def _ids(text: str | Sequence[str]) -> frozenset[str]:
    """Returns ids of snapshots."""
    named = _several(text)
    for each in named:
        if not _ID.fullmatch(each):
            raise PolicyError(f"{_shown(each)} is not the id of a snapshot")
    return frozenset(named)


SHORTEST_WRITE_MS = DAY_MS
"""Nothing younger is ever taken for garbage: a writer may still be about to commit it."""
LONGEST_WRITE_MS = 3 * DAY_MS
"""What counts where nobody says how long a write may take."""

TOP_ONLY = ("audit", "backups", "cache", "longest-write", "trust-snapshots", "webhook")
"""The settings that count for a whole lake: only the top of a file has them."""

_LISTS = ("pointer-branches", "readers", "shared-with", "trust-snapshots")
"""The settings that take several values."""

LAKE, NONE = "lake", "none"
"""Whom `sharing` asks: every table of the lake, or nobody."""

SETTINGS: dict[str, Callable[[Any], Any]] = {
    "records": _records,
    "grace": _duration,
    "blast-radius": _share,
    "engine": _one_of("auto", "local", "spark"),
    "include-outside": _truth,
    "history": _history,
    "cache": _records,
    "audit": _records,
    "webhook": _webhook,
    "sharing": _one_of(LAKE, NONE),
    "shared-with": _sharers,
    "trust-snapshots": _ids,
    "longest-write": _longest_write,
    "backups": _backups,
    "approve-above": _approve_above,
    "archive": _tier,
    "pointers": _pointers,
    "pointer-branches": _branches,
    "pointer-links": _duration,
    "version-hint": _truth,
    "readers": _readers,
    "readers-max-age": _longest_rest,
    "readers-from": _one_of("offset", "start"),
}
"""The keys that are not rules, each with its parser."""

_COUNT_OR_WINDOW = "a number of 1 or more, a duration such as 30d, all, or off"
ALLOWED = {
    **dict.fromkeys(RULE_NAMES, _COUNT_OR_WINDOW),
    "last": "a number of 1 or more, all, or off",
    "within": "a duration such as 90s, 15m, 24h, 30d, 4w or 1y, or off",
    "tags": "a list of patterns such as [audit-*, release-?], or off",
    "records": "a location",
    "grace": "a duration such as 24h, or 0s",
    "blast-radius": "a share of the table's files and bytes, above 0% and up to 100%",
    "engine": "auto, local or spark",
    "include-outside": "true or false",
    "history": "a duration such as 180d, an instant (2026-01-01T00:00:00Z, or epoch milliseconds), forever, or off",
    "audit": "a location",
    "webhook": "an address such as https://HOST/PATH",
    "cache": "off, disk, a folder, or redis://HOST:PORT/DATABASE",
    "sharing": "lake or none",
    "shared-with": "a list of tables, patterns such as lake.backup.*, or locations",
    "trust-snapshots": "a list of ids of snapshots, or * for all",
    "longest-write": "a duration of a day or more, such as 7d",
    "backups": "a duration such as 90d, or forever",
    "approve-above": "a size such as 500GiB or 1TiB, or off",
    "archive": "the name of a tier, or off",
    "pointers": "identifier, ordinal, uuid, or off",
    "pointer-branches": "a list of branches or patterns, such as [main, release-*]",
    "pointer-links": "a duration such as 30d",
    "version-hint": "true or false",
    "readers": "a list of checkpoints such as s3://jobs/checkpoints/*, or off",
    "readers-max-age": "a duration such as 30d, or forever",
    "readers-from": "offset or start",
}
"""What each key takes, in words."""
