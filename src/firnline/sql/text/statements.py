"""What a statement asks: a query, or one of `DESCRIBE`, `SHOW TABLES`, `TAG snapshot …` and `USE TABLE …`.

Anything else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import TokenType

from firnline.app.places import Places
from firnline.errors import NoSuchTable, UsageError
from firnline.model.times import DAY_MS
from firnline.ops.marks.tags import FOREVER
from firnline.ports.formats import State
from firnline.sql import LAKE, METADATA, ROWS, TOLD_OF_LAKE
from firnline.sql.text.columns import columns_asked, tables_of
from firnline.sql.text.versions import Version, clause_at
from firnline.sql.text.words import DIALECT, SYNTAX, Path, Word, paths_of, split, words_of

_DAYS = re.compile(r"[0-9]{1,9}")
_TAG = "TAG snapshot N OF ns.table AS 'name' WITH RETENTION FOREVER (or: n DAYS)"
_DESCRIBE = "DESCRIBE TABLE ns.table, or DESCRIBE EXTENDED ns.table.NAME"
_USE = "USE TABLE ns.table"
_SHOW = "SHOW TABLES IN catalog.ns LIKE 'sales*'"
_NOT_READ = f"{SYNTAX}; a form that only Spark knows can be asked of `spark.read.format('firnline')`"
_BEGINNINGS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "DESCRIBE", "DESC", "SHOW", "TAG", "USE")
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
    """A table that a query reads: its path, whether the query gives it an alias, and the version it wants."""

    path: Path
    has_alias: bool = False
    version: Version | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """`DESCRIBE [TABLE] [EXTENDED] ns.table`: its columns; extended, also what it is."""

    table: NamedTable
    extended: bool


@dataclass(frozen=True, slots=True)
class ShowTables:
    """`SHOW TABLES [IN ns] [LIKE 'pattern']`."""

    namespace: str | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A query. `text` is without the clauses that name a version; `words` tell every name that occurs, `columns` those
    that only a column of its tables can have.

    `whole_rows`: it may need columns that it does not name.
    """

    text: str
    tables: tuple[NamedTable, ...]
    words: tuple[Word, ...]
    columns: tuple[str, ...]
    whole_rows: bool


Statement = UseTable | TagSnapshot | Describe | ShowTables | Query
Load = Callable[[str], State | None]
"""Returns a table as it is now; None where there is none of that name."""
Show = Callable[[str | None], object]
"""Shows the tables of a namespace. Raises where it is not there."""


def understood(text: str, load: Load, show: Show = lambda namespace: None) -> list[Statement]:
    """Returns the statements of a text. Raises UsageError where one of them is none, NoSuchTable where it names a table
    or a namespace that is not there: no session has to be started for that, nor Spark be loaded.
    """
    found, load = parsed(text), cache(load)
    for each in found:
        if isinstance(each, ShowTables) and each.namespace is not None:
            show(each.namespace)
        tables = each.tables if isinstance(each, Query) else (each.table,) if isinstance(each, Describe) else ()
        for named in tables:
            meant(named, load)
    return found


def parsed(text: str) -> list[Statement]:
    return [parse(each) for each in split(text)]


def loading(places: Places) -> Load:
    def load(table: str) -> State | None:
        try:
            return places.source(table).load()
        except NoSuchTable:
            return None

    return load


def meant(named: NamedTable, load: Load) -> tuple[State | None, str]:
    """Returns the table that a name means, None for the whole lake, and what of it. Raises NoSuchTable, and UsageError
    for a version of the whole lake: it has none.
    """
    names, whole = named.path.names, named.path.text
    state = load(whole)
    if state is not None:
        return state, ROWS
    what = names[-1].lower()
    if what in TOLD_OF_LAKE and [each.lower() for each in names[:-1]] == [LAKE]:
        if named.version is not None:
            raise UsageError(
                f"{whole} tells of all tables: it has no versions", hint="ask one table: TABLE VERSION AS OF …"
            )
        return None, what
    state = load(named.path.above) if what in METADATA else None
    if state is None:
        known = f"a table, or a table and one of: {', '.join(METADATA)}"
        raise NoSuchTable(f"no such table: {whole}", hint=f"{known}; `firnline tables` lists the tables")
    return state, what


def parse(text: str) -> Statement:
    """Returns what one statement asks. Raises UsageError where it is none that can be carried out here."""
    words = words_of(text)
    if words[0].says("TAG"):
        return _tag(words)
    if words[0].says("USE"):
        return _use(words)
    if words[0].says("DESCRIBE") or words[0].says("DESC"):
        return _describe(words[1:])
    if words[0].says("SHOW"):
        return _show(words_of(words[1].text) if len(words) > 1 else [])
    return _query(text, words)


def _use(words: Sequence[Word]) -> UseTable:
    if len(words) < 3 or not words[1].says("TABLE"):
        raise UsageError("USE needs a table", hint=_USE)
    table, after = _named_at(words, 2, "table", _USE)
    if after != len(words):
        raise UsageError(f"USE TABLE ends after the table, not with {words[-1].text!r}", hint=_USE)
    return UseTable(table)


def _describe(words: Sequence[Word]) -> Describe:
    place = 0
    while place < len(words) and (words[place].says("TABLE") or words[place].says("EXTENDED")):
        place += 1
    path = next(paths_of(words[place:]), None)
    if path is None or path.first != words[place].first or place + 2 * len(path.names) - 1 != len(words):
        raise UsageError("DESCRIBE needs a table, and nothing after it", hint=_DESCRIBE)
    return Describe(NamedTable(path), any(word.says("EXTENDED") for word in words[:place]))


def _show(words: Sequence[Word]) -> ShowTables:
    """Returns what SHOW asks, of the words after it. Only tables are shown."""
    if not words or not words[0].says("TABLES"):
        raise UsageError("SHOW shows tables here", hint=_SHOW)
    place, namespace = 1, None
    if place < len(words) and (words[place].says("IN") or words[place].says("FROM")):
        namespace, place = _named_at(words, place + 1, "namespace", _SHOW)
    is_like = place < len(words) and words[place].says("LIKE")
    rest = words[place + is_like :]
    if is_like and not rest:
        raise UsageError("the pattern after LIKE is missing", hint=_SHOW)
    if len(rest) > 1 or any(word.kind is not TokenType.STRING for word in rest):
        raise UsageError(f"SHOW TABLES ends with a pattern, not with {rest[-1].text!r}", hint=_SHOW)
    return ShowTables(namespace, rest[0].text if rest else None)


def _named_at(words: Sequence[Word], place: int, what: str, hint: str) -> tuple[str, int]:
    """Returns the table, or the namespace, whose path begins at a place, and the place after it. A quoted text may be a
    location.
    """
    if place < len(words) and words[place].kind is TokenType.STRING:
        return words[place].text, place + 1
    path = next(paths_of(words[place:]), None)
    if path is None or path.first != words[place].first:
        raise UsageError(f"a {what}'s name is missing", hint=hint)
    return path.text, place + 2 * len(path.names) - 1


def _tag(words: Sequence[Word]) -> TagSnapshot:
    if len(words) < 4 or not words[1].says("SNAPSHOT"):
        raise UsageError("TAG needs a snapshot", hint=_TAG)
    snapshot, place, table = words[2].text, 3, None
    if words[place].says("OF"):
        table, place = _named_at(words, place + 1, "table", _TAG)
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
    kept = words_of(text)
    try:
        parsed = sqlglot.parse_one(_readable(text, kept), read=DIALECT)
    except ParseError as problem:
        _refuse_misspelt(words[0].text)
        where = problem.errors[0]
        at = f"line {where['line']}, column {where['col']}: {where['highlight']}"
        raise UsageError(f"the statement cannot be understood at {at}", hint=_NOT_READ) from None
    if not isinstance(parsed, exp.Query):
        _refuse_misspelt(words[0].text)
        raise UsageError(
            f"{words[0].text.upper()} is not run here: only queries, DESCRIBE, SHOW TABLES, TAG snapshot "
            "and USE TABLE are",
            hint=SYNTAX,
        )
    tables = tuple(_named(each, kept, wanted) for each in tables_of(parsed) if _is_named(each, parsed))
    if len(wanted) > sum(each.version is not None for each in tables):
        raise UsageError("a version is asked of something that is no table of the lake", hint=SYNTAX)
    return Query(text, tables, tuple(kept), columns_asked(parsed), _needs_whole_rows(parsed, kept))


def _refuse_misspelt(first: str) -> None:
    """Raises UsageError where a statement begins with nearly, but not quite, a word that one may begin with."""
    near = get_close_matches(first.upper(), _BEGINNINGS, 1, 0.75)
    if near and first.upper() not in _BEGINNINGS:
        raise UsageError(f"no statement begins with {first}", hint=f"did you mean {near[0]}?")


def _readable(text: str, words: Sequence[Word]) -> str:
    """Returns the text with another name, as long, for the function `window`: the parser takes that for the clause."""
    for word, after in pairwise(words):
        if word.says("WINDOW") and after.kind is TokenType.L_PAREN:
            text = text[: word.first] + "_" * len(word.text) + text[word.last + 1 :]
    return text


def _without_versions(text: str, words: Sequence[Word]) -> tuple[str, dict[int, Version]]:
    """Returns the text with blanks for the clauses that name a version, and by the place before each what it names."""
    wanted: dict[int, Version] = {}
    place, blank = 1, text
    while place < len(words):
        found = clause_at(text, words, place)
        if found is None:
            place += 1
            continue
        first, last, before = words[place].first, words[found[0] - 1].last, words[place - 1].last
        wanted[before] = found[1]
        blank = blank[:first] + " " * (last + 1 - first) + blank[last + 1 :]
        place = found[0]
    return blank, wanted


def _is_named(table: exp.Table, parsed: exp.Query) -> bool:
    """Tells whether it is a table of a catalog: no function, and no name that the query itself defines."""
    if not all(isinstance(part, exp.Identifier) for part in table.parts):
        return False
    defined = {each.alias.lower() for each in parsed.find_all(exp.CTE)}
    return len(table.parts) > 1 or table.name.lower() not in defined


def _named(table: exp.Table, words: Sequence[Word], wanted: dict[int, Version]) -> NamedTable:
    first, last = table.parts[0].meta["start"], table.parts[-1].meta["end"]
    within = [word for word in words if first <= word.first and word.last <= last]
    path = Path(tuple(word for word in within if word.kind is not TokenType.DOT))
    return NamedTable(path, bool(table.alias), wanted.get(last))


def _needs_whole_rows(parsed: exp.Query, words: Sequence[Word]) -> bool:
    """Tells whether columns count that are not named: stars, new names for all, joins by equal names, pivots, pipes."""
    stars = any(not isinstance(each.parent, exp.Count) for each in parsed.find_all(exp.Star))
    renamed = any(each.alias_column_names for each in tables_of(parsed))
    implied = any(word.text.upper() in _IMPLYING for word in words)
    return stars or renamed or implied or parsed.find(exp.Select) is None
