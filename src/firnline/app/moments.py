"""Instants, ages and rules as Python people write them, read into the values and texts that policies are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches

from firnline.app.places import now_ms
from firnline.callers import in_callers_words
from firnline.errors import BadTimestamp, PolicyError, UsageError
from firnline.model.numbers import plain_number
from firnline.model.times import (
    LAST_MS,
    SECOND_MS,
    format_duration,
    is_duration,
    parse_duration,
    parse_instant,
    parse_last_moment,
    parse_moment,
    refuse_seconds,
)

Moment = str | int | date
"""An instant: a datetime with its zone, ISO 8601 with its zone, a date or its text (its beginning in UTC), or
milliseconds since the epoch.
"""
Age = str | timedelta
"""A time span: a timedelta, or a text such as 30d."""
Cutoff = Moment | timedelta
"""An instant, or an age that is counted back from the present: a timedelta, or a text such as 30d."""
RuleValue = int | str | timedelta | Sequence[str]
"""What a rule takes: a number, a text as in firnline.yaml, a time span, or patterns of tags."""
KeepRules = Mapping[str, RuleValue]
"""Rules by their names: `{"daily": 3, "within": timedelta(days=7)}`."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_ZONE_HINT = "a time without a zone means another instant on each machine: datetime(2026, 8, 22, 9, tzinfo=UTC)"
_INSTANT_HINT = "a datetime with its zone, ISO 8601 with its zone, or epoch milliseconds as a whole number"
_CUTOFF_HINT = "write an age (7d), a date (2026-08-22) or an instant with its zone (2026-08-22T09:00:00Z)"
_KEEP_HINT = 'rules by their names, such as {"daily": 3, "within": "7d"}'
_AGE_HINT = "timedelta(days=7), or a text such as 7d"


def instant(moment: Moment | None) -> int | None:
    """Returns milliseconds since the epoch, of a datetime those that are over, of a date what its text means. Raises
    BadTimestamp for what is no instant or has no zone, and for a number in another unit: all of a table is older than
    the year 50000.
    """
    moment = plain_number(moment)
    match moment:
        case None:
            return None
        case datetime():
            if moment.utcoffset() is None:
                raise BadTimestamp(f"a datetime without a zone: {moment!r}", hint=_ZONE_HINT)
            return (moment - _EPOCH) // _MILLISECOND
        case date():
            return parse_moment(moment.isoformat())
        case str():
            return parse_moment(moment)
        case int() if not isinstance(moment, bool):
            return parse_instant(str(moment))
        case float():
            refuse_seconds(moment)
    raise BadTimestamp(f"not an instant: {moment!r:.64}", hint=_INSTANT_HINT)


def end_ms(until: Cutoff | None, now: int) -> int | None:
    """Returns the last instant of what lasts until then: of a date the end of that day in UTC, of an age the instant so
    long after `now`. Raises UsageError for one that has passed: nothing would last.
    """
    age = cutoff_age_ms(until)
    if age is not None:
        return min(LAST_MS, now + age)
    if until is None or isinstance(until, timedelta):
        return None
    if isinstance(until, date) and not isinstance(until, datetime):
        until = until.isoformat()
    end = parse_last_moment(until) if isinstance(until, str) else instant(until)
    if end is not None and end < now:
        raise UsageError(
            f"{in_callers_words('--until')} {until} has passed",
            hint="name a later day or instant, or an age from now (30d)",
        )
    return end


def cutoff_ms(older_than: Cutoff | None, now: Moment | None = None) -> int | None:
    """Returns the instant before which something is old: the one that is given, or so long before `now`, else before
    the present. Raises UsageError for what is neither.
    """
    age = cutoff_age_ms(older_than)
    if age is not None:
        at = instant(now)
        return (now_ms() if at is None else at) - age
    if not isinstance(older_than, str):
        return None if isinstance(older_than, timedelta) else instant(older_than)
    try:
        return instant(older_than)
    except BadTimestamp as problem:
        raise BadTimestamp(problem.message, hint=_CUTOFF_HINT) from None


def cutoff_age_ms(older_than: Cutoff | None) -> int | None:
    """Returns the age that is given; None where it is an instant, or nothing."""
    if isinstance(older_than, timedelta) or (isinstance(older_than, str) and is_duration(older_than)):
        return duration_ms(older_than)
    return None


def duration_ms(age: Age) -> int:
    """Returns milliseconds. Raises UsageError for what is no age, or lies ahead."""
    match age:
        case str():
            return parse_duration(age)
        case timedelta() if age >= timedelta():
            return age // _MILLISECOND
    raise UsageError(f"not an age: {age!r:.64}", hint=_AGE_HINT)


def rule_texts(keep: KeepRules | None) -> dict[str, str]:
    """Returns rules as flags would say them: these are what a record keeps. Raises UsageError for a value that no rule
    takes; the parser of policies says whether this very rule does.
    """
    if not isinstance(keep, Mapping | None):
        raise UsageError(f"keep: {keep!r:.64} is no mapping of rules", hint=_KEEP_HINT)
    return {name: _rule_text(name, value) for name, value in (keep or {}).items()}


def checked_rules(keep: KeepRules | None) -> dict[str, str]:
    """Returns rules as flags would say them. Raises PolicyError for what is no rule, or is told what it does not take:
    in the words of who calls from Python, since further in all are flags.
    """
    from firnline.policy.rules import RULE_NAMES
    from firnline.policy.values import SETTINGS, parse_rule, parse_setting

    texts = rule_texts(keep)
    for name, text in texts.items():
        if name in RULE_NAMES:
            parse_rule(name, text, f"keep {name}")
        elif name in SETTINGS:
            parse_setting(name, text, f"keep {name}")
        else:
            near = get_close_matches(str(name), RULE_NAMES, n=1)
            guess = f" (did you mean {near[0]!r}?)" if near else ""
            raise PolicyError(f"keep: unknown rule {name!r:.64}{guess}", hint=f"rules are {', '.join(RULE_NAMES)}")
    return texts


def _rule_text(name: str, value: RuleValue) -> str:
    value = plain_number(value)
    match value:
        case str():
            return value
        case timedelta():
            return _age_text(name, value)
        case int() if not isinstance(value, bool):
            return str(value)
        case list() | tuple() if all(isinstance(each, str) for each in value):
            return _patterns_text(name, value)
    raise UsageError(
        f"keep {name}: {value!r:.64} is no value of a rule", hint='3, timedelta(days=7), "7d", "all", "off"'
    )


def _age_text(name: str, age: timedelta) -> str:
    """Returns an age in whole seconds: a text has no smaller ones, and less would be kept than was said."""
    ms = duration_ms(age)
    if timedelta(seconds=ms // SECOND_MS) != age:
        raise UsageError(f"keep {name}: {age!r} is no whole number of seconds", hint=_AGE_HINT)
    return format_duration(ms)


def _patterns_text(name: str, patterns: Sequence[str]) -> str:
    """Returns patterns with commas between. One that has a comma itself would be taken for two."""
    torn = [each for each in patterns if "," in each]
    if torn:
        raise UsageError(f"keep {name}: {torn[0]!r} has a comma", hint="write ? in its place: it stands for any letter")
    return ",".join(patterns)
