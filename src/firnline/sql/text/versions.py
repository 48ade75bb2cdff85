"""Clauses that say which version of a table a query reads, by an id, a ref or an instant: where they stand, what they
name. They are Spark's own, and `FOR TAG`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from firnline.errors import UsageError
from firnline.sql.text.words import SYNTAX, Word

_BY_VERSION, _BY_TIME = ("VERSION", "SYSTEM_VERSION"), ("TIMESTAMP", "SYSTEM_TIME")
_LITERALS = ("TIMESTAMP", "DATE", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ")
_OPERATORS = ("+", "-", "*", "/", "%", "||")
_SIGNS = ("+", "-")
_UNITS = tuple(
    f"{unit}{end}"
    for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
    for end in ("", "S")
)


@dataclass(frozen=True, slots=True)
class AtVersion:
    """The id of a snapshot, or a ref."""

    name: str


@dataclass(frozen=True, slots=True)
class AtInstant:
    """An instant, as an expression of Spark SQL."""

    expression: str


Version = AtVersion | AtInstant


def clause_at(text: str, words: Sequence[Word], place: int) -> tuple[int, Version] | None:
    """Returns the place after a clause that begins at a place, and what it names; None if none does.

    Raises UsageError for a clause without an end, or whose version is neither a number nor a text.
    """
    start = place + words[place].says("FOR")
    if start > place and _says(words, start, "TAG") and _is_text(words, start + 1):
        return start + 2, AtVersion(words[start + 1].text)
    if not (_says(words, start + 1, "AS") and _says(words, start + 2, "OF")):
        return None
    value = start + 3
    if words[start].text.upper() in _BY_VERSION:
        if not (_is_text(words, value) or _is_number(words, value)):
            raise UsageError("a version is a number or stands in quotes: VERSION AS OF 'main'", hint=SYNTAX)
        return value + 1, AtVersion(words[value].text)
    if words[start].text.upper() in _BY_TIME:
        end = _expression_end(words, value)
        return end, AtInstant(text[words[value].first : words[end - 1].last + 1])
    return None


def _expression_end(words: Sequence[Word], place: int) -> int:
    """Returns the place after an expression: operands with operators between. What follows may be a table's alias."""
    end = _operand_end(words, place)
    while end < len(words) and words[end].text in _OPERATORS and not _is_text(words, end):
        end = _operand_end(words, end + 1)
    return end


def _operand_end(words: Sequence[Word], place: int) -> int:
    while place < len(words) and words[place].text in _SIGNS:
        place += 1
    if place >= len(words):
        raise UsageError("an instant is missing after AS OF", hint=SYNTAX)
    if words[place].says("INTERVAL"):
        return _interval_end(words, place + 1)
    if words[place].kind is TokenType.L_PAREN:
        return _closed(words, place)
    literal = words[place].text.upper() in _LITERALS and _is_text(words, place + 1)
    after = place + 2 if literal else place + 1
    return _closed(words, after) if after < len(words) and words[after].kind is TokenType.L_PAREN else after


def _interval_end(words: Sequence[Word], place: int) -> int:
    """Returns the place after what INTERVAL counts: `1 DAY 2 HOURS`, `'1 2' DAY TO HOUR`, `-3 days`."""
    place += place < len(words) and words[place].text in _SIGNS
    while place < len(words) and (
        _is_text(words, place) or _is_number(words, place) or words[place].text.upper() in (*_UNITS, "TO")
    ):
        place += 1
    return place


def _closed(words: Sequence[Word], place: int) -> int:
    """Returns the place after the parenthesis that closes the one at a place."""
    depth = 0
    for at in range(place, len(words)):
        depth += (words[at].kind is TokenType.L_PAREN) - (words[at].kind is TokenType.R_PAREN)
        if depth == 0:
            return at + 1
    raise UsageError("a parenthesis is not closed", hint=SYNTAX)


def _says(words: Sequence[Word], place: int, keyword: str) -> bool:
    return place < len(words) and words[place].says(keyword)


def _is_text(words: Sequence[Word], place: int) -> bool:
    return place < len(words) and words[place].kind is TokenType.STRING


def _is_number(words: Sequence[Word], place: int) -> bool:
    return place < len(words) and words[place].kind is TokenType.NUMBER
