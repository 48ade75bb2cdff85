"""Names of a query that only columns of tables can have: one that no table has is a slip, told before Spark starts.

Spark knows more names than the text tells of. So whatever may name something else is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches

from sqlglot import exp

from firnline.errors import UsageError

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
"""Others are names that Spark makes, such as `max(id)`, or a table's own runtime, such as `_file`."""

_MAKING = (exp.UDTF, exp.Pivot, exp.Anonymous, exp.QueryTransform)
"""What may make columns that the text does not name."""

_WORDS = frozenset({"all", "default", "grouping__id", "localtimestamp", "session_user", "user"})
"""What means something without a table, as does all that begins with `current_`."""


def columns_asked(parsed: exp.Query) -> tuple[str, ...]:
    """Returns the names that must be columns of the tables, each once; none of a query that may make columns by itself
    without naming them.
    """
    tables = list(tables_of(parsed))
    aliases = {each.alias_or_name.lower() for each in tables}
    if any(parsed.find_all(*_MAKING)) or not all(map(_is_plain, tables)) or _takes_apart(parsed, aliases):
        return ()
    own = {each.name.lower() for each in parsed.find_all(exp.Identifier) if not isinstance(each.parent, exp.Column)}
    own |= {column.name.lower() for column in parsed.find_all(exp.Column) if not _is_of_table(column, aliases)}
    return tuple(dict.fromkeys(name for name in _names(parsed, aliases) if name.lower() not in own))


def tables_of(parsed: exp.Query) -> Iterator[exp.Table]:
    """Yields what a query reads; a table that a hint names is one of these, said again."""
    return (each for each in parsed.find_all(exp.Table) if each.find_ancestor(exp.Hint) is None)


def _takes_apart(parsed: exp.Query, aliases: Collection[str]) -> bool:
    """Tells whether a star stands for the parts of a column: they are columns then, and the text does not name them."""
    stars = (each.parent for each in parsed.find_all(exp.Star) if isinstance(each.parent, exp.Column))
    return any(not _is_of_table(each, aliases) for each in stars)


def _is_plain(table: exp.Table) -> bool:
    return all(isinstance(part, exp.Identifier) for part in table.parts)


def _names(parsed: exp.Query, aliases: Collection[str]) -> Iterator[str]:
    for column in parsed.find_all(exp.Column):
        name = column.name
        is_word = name.lower() in _WORDS or name.lower().startswith("current_")
        if _is_of_table(column, aliases) and _PLAIN.fullmatch(name) and not is_word:
            yield name


def _is_of_table(column: exp.Column, aliases: Collection[str]) -> bool:
    """Tells whether a name stands alone or after a table's. What stands after any other may be a part of a column; a
    query around this one knows it by that part's name.
    """
    before = [part.name.lower() for part in column.parts[:-1]]
    return not before or (len(before) == 1 and before[0] in aliases)


def refuse_unknown(asked: Collection[str], known: Collection[str]) -> None:
    """Raises UsageError for a name that none of the known columns has, with those that are near."""
    lower = {each.lower() for each in known}
    for name in asked:
        if name.lower() not in lower:
            near = get_close_matches(name.lower(), sorted(lower), n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
            raise UsageError(f"no table of the query has a column {name!r}", hint=hint)
