"""What a statement asks: a query, or one of `TAG snapshot …` and `USE TABLE …`. Anything else is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from firnline.errors import UsageError
from firnline.model.names import is_location, written
from firnline.model.times import DAY_MS
from firnline.ops.marks.tags import FOREVER

DIALECT = "spark"
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


def _is_name(word: Word) -> bool:
    return word.kind is TokenType.IDENTIFIER or (word.kind is not TokenType.STRING and word.text.isidentifier())


_DAYS = re.compile(r"[0-9]{1,9}")
_TAG = "TAG snapshot N OF ns.table AS 'name' WITH RETENTION FOREVER (or: n DAYS)"
_IMPLYING = ("NATURAL", "PIVOT", "UNPIVOT", "|>")


@dataclass(frozen=True, slots=True)
class UseTable:
    """`USE TABLE ns.table`: what a TAG without OF means from now on."""

    table: str


@dataclass(frozen=True, slots=True)
class TagSnapshot:
    """`TAG snapshot N [OF ns.table] AS 'name' WITH RETENTION FOREVER | n DAYS`."""

    snapshot: str
    table: str | None
    name: str
    age_ms: int


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table that a query reads: its path, whether the query gives it an alias, and the ref or snapshot it wants."""

    path: Path
    has_alias: bool
    snapshot: str | None


@dataclass(frozen=True, slots=True)
class Query:
    """A query. `text` is without the clauses that name a tag or version; `words` tell every name that occurs.

    `whole_rows`: it may need columns that it does not name.
    """

    text: str
    tables: tuple[NamedTable, ...]
    words: tuple[Word, ...]
    whole_rows: bool


Statement = UseTable | TagSnapshot | Query


def parse(text: str) -> Statement:
    """Returns what one statement asks. Raises UsageError where it is none that can be carried out here."""
    words = words_of(text)
    if words[0].says("TAG"):
        return _tag(words)
    if words[0].says("USE"):
        return _use(words)
    return _query(text, words)


def _use(words: Sequence[Word]) -> UseTable:
    if len(words) < 3 or not words[1].says("TABLE"):
        raise UsageError("USE needs a table", hint="USE TABLE ns.table")
    table, after = _table_at(words, 2)
    if after != len(words):
        raise UsageError(f"USE TABLE ends after the table, not with {words[-1].text!r}", hint="USE TABLE ns.table")
    return UseTable(table)


def _table_at(words: Sequence[Word], place: int) -> tuple[str, int]:
    """Returns the table whose path begins at a place, and the place after it. A quoted text may be a location."""
    if place < len(words) and words[place].kind is TokenType.STRING:
        return words[place].text, place + 1
    path = next(paths_of(words[place:]), None)
    if path is None or path.first != words[place].first:
        raise UsageError("a table's name is missing", hint=_TAG)
    return path.text, place + 2 * len(path.names) - 1


def _tag(words: Sequence[Word]) -> TagSnapshot:
    if len(words) < 4 or not words[1].says("SNAPSHOT"):
        raise UsageError("TAG needs a snapshot", hint=_TAG)
    snapshot, place, table = words[2].text, 3, None
    if words[place].says("OF"):
        table, place = _table_at(words, place + 1)
    rest = words[place:]
    if len(rest) < 5 or not (rest[0].says("AS") and rest[2].says("WITH") and rest[3].says("RETENTION")):
        raise UsageError("TAG needs a name and a retention", hint=_TAG)
    return TagSnapshot(snapshot, table, rest[1].text, _age(rest[4:]))


def _age(words: Sequence[Word]) -> int:
    if len(words) == 1 and words[0].says("FOREVER"):
        return FOREVER
    if len(words) == 2 and _DAYS.fullmatch(words[0].text) and (words[1].says("DAYS") or words[1].says("DAY")):
        return int(words[0].text) * DAY_MS
    raise UsageError(f"no retention: {' '.join(word.text for word in words)}", hint=_TAG)


def _query(text: str, words: Sequence[Word]) -> Query:
    text, wanted = _without_versions(text, words)
    try:
        parsed = sqlglot.parse_one(text, read=DIALECT)
    except ParseError as problem:
        where = problem.errors[0]
        at = f"line {where['line']}, column {where['col']}: {where['highlight']}"
        raise UsageError(f"the statement cannot be understood at {at}", hint=SYNTAX) from None
    if not isinstance(parsed, exp.Query):
        raise UsageError(
            f"{words[0].text.upper()} is not run here: only queries, TAG snapshot and USE TABLE are", hint=SYNTAX
        )
    kept = words_of(text)
    tables = tuple(_named(each, kept, wanted) for each in parsed.find_all(exp.Table) if _is_named(each, parsed))
    return Query(text, tables, tuple(kept), _needs_whole_rows(parsed, kept))


def _without_versions(text: str, words: Sequence[Word]) -> tuple[str, dict[int, str]]:
    """Returns the text with blanks for `FOR TAG 'name'` and `VERSION AS OF n`, and by the place before each what it
    names.
    """
    wanted: dict[int, str] = {}
    for place in range(1, len(words)):
        length = _version_at(words, place)
        if length:
            first, last = words[place].first, words[place + length - 1]
            wanted[words[place - 1].last] = last.text
            text = text[:first] + " " * (last.last + 1 - first) + text[last.last + 1 :]
    return text, wanted


def _version_at(words: Sequence[Word], place: int) -> int:
    """Returns how many words a clause has that begins at a place; 0 where none does."""
    said = [word.text.upper() for word in words[place : place + 5]]
    if said[:2] == ["FOR", "TAG"] and len(said) > 2 and words[place + 2].kind is TokenType.STRING:
        return 3
    if said[:3] == ["VERSION", "AS", "OF"] and len(said) > 3:
        return 4
    return 5 if said[:4] == ["FOR", "VERSION", "AS", "OF"] and len(said) > 4 else 0


def _is_named(table: exp.Table, parsed: exp.Query) -> bool:
    """Tells whether it is a table of a catalog: no function, and no name that the query itself defines."""
    if not all(isinstance(part, exp.Identifier) for part in table.parts):
        return False
    defined = {each.alias.lower() for each in parsed.find_all(exp.CTE)}
    return len(table.parts) > 1 or table.name.lower() not in defined


def _named(table: exp.Table, words: Sequence[Word], wanted: dict[int, str]) -> NamedTable:
    first, last = table.parts[0].meta["start"], table.parts[-1].meta["end"]
    within = [word for word in words if first <= word.first and word.last <= last]
    path = Path(tuple(word for word in within if word.kind is not TokenType.DOT))
    return NamedTable(path, bool(table.alias), wanted.get(last))


def _needs_whole_rows(parsed: exp.Query, words: Sequence[Word]) -> bool:
    """Tells whether columns count that are not named: stars, joins by equal names, pivots, pipes."""
    stars = any(not isinstance(each.parent, exp.Count) for each in parsed.find_all(exp.Star))
    implied = any(word.text.upper() in _IMPLYING for word in words)
    return stars or implied or parsed.find(exp.Select) is None
