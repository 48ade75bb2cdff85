"""The words of a text in Spark SQL: statements between semicolons, tokens with their places, names joined by dots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import sqlglot
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from firnline.errors import UsageError
from firnline.model.names import is_location, written

DIALECT = "spark"
_DEPTHS = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}
SYNTAX = "see `firnline sql --help`, or docs/guides/sql.md for what can be asked"


@dataclass(frozen=True, slots=True)
class Word:
    """One token: its text without quotes, and its first and last place."""

    text: str
    first: int
    last: int
    kind: TokenType

    def says(self, keyword: str) -> bool:
        return self.kind is not TokenType.STRING and self.text.upper() == keyword


@dataclass(frozen=True, slots=True)
class Path:
    """Names joined by dots, `lake.ns.table`, and where they stand."""

    words: tuple[Word, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)

    @property
    def text(self) -> str:
        """The name as a lake reads it: what stood in backticks stays one part."""
        return _table_text(self.names)

    @property
    def above(self) -> str:
        return _table_text(self.names[:-1])

    @property
    def first(self) -> int:
        return self.words[0].first


def _table_text(names: Sequence[str]) -> str:
    """Returns the text of a table's name; a path in backticks that stands alone is the table's location."""
    return names[0] if len(names) == 1 and is_location(names[0]) else written(names)


def split(text: str) -> Iterator[str]:
    """Yields the statements of a text, which stand between semicolons."""
    start = 0
    for word in words_of(text):
        if word.kind is TokenType.SEMICOLON:
            yield from _if_any(text[start : word.first])
            start = word.last + 1
    yield from _if_any(text[start:])


def _if_any(text: str) -> Iterator[str]:
    if words_of(text):
        yield text


def ends(text: str) -> bool:
    """Tells whether the last statement of a text is complete: a shell reads on until it is."""
    try:
        words = words_of(text)
    except UsageError:
        return False  # a quote is still open
    return not words or words[-1].kind is TokenType.SEMICOLON


def words_of(text: str) -> list[Word]:
    """Returns the tokens. Raises UsageError where there are none to be made, such as for an open quote."""
    try:
        return [_word(token) for token in sqlglot.tokenize(text, read=DIALECT)]
    except TokenError as problem:
        raise UsageError(f"this is not SQL: {problem}", hint=SYNTAX) from None


def _word(token: Token) -> Word:
    return Word(token.text, token.start, token.end, token.token_type)


def paths_of(words: Sequence[Word]) -> Iterator[Path]:
    """Yields every longest run of names that dots join, single names too."""
    at = 0
    while at < len(words):
        found = [words[at]]
        while at + 2 < len(words) and words[at + 1].kind is TokenType.DOT and _is_name(words[at + 2]):
            found.append(words[at + 2])
            at += 2
        if all(map(_is_name, found)):
            yield Path(tuple(found))
        at += 1


def end_of_sample(words: Sequence[Word], last: int) -> int:
    """Returns where `TABLESAMPLE (…) REPEATABLE (…)` ends that may stand after this place: an alias comes after it."""
    rest = [word for word in words if word.first > last]
    for keyword in ("TABLESAMPLE", "REPEATABLE"):
        if rest and rest[0].says(keyword):
            depths = accumulate(_DEPTHS.get(word.kind, 0) for word in rest)
            ends = (at for at, depth in enumerate(depths) if at > 0 and depth == 0)
            at = next(ends, 0)
            last, rest = rest[at].last, rest[at + 1 :]
    return last


def _is_name(word: Word) -> bool:
    return word.kind is TokenType.IDENTIFIER or (word.kind is not TokenType.STRING and word.text.isidentifier())
