"""Names of tables as people write them: parts joined by dots.

A part that would not survive that stands in double quotes, as in SQL: `lake.sales."a.b"`. So every name has one text
that reads back as the very same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from firnline.errors import UsageError

_NEEDS_QUOTES = re.compile(r'[."/@*?[]|^\Z')
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_PART = re.compile(rf'(?:({_QUOTED.pattern})|((?!")[^.]*))(\.|\Z)', re.DOTALL)


def written(parts: Iterable[str]) -> str:
    """Returns the text of a name: `parts_of` reads the same parts from it, whatever characters they hold."""
    return ".".join('"' + part.replace('"', '""') + '"' if _NEEDS_QUOTES.search(part) else part for part in parts)


def parts_of(text: str) -> tuple[str, ...]:
    """Returns the parts of a name. Raises UsageError where a quote opens a part and none closes it."""
    found: list[str] = []
    place, dot = 0, "."
    while dot:
        match = _PART.match(text, place)
        if match is None:
            raise UsageError(f"a quote is not closed in the name {text}", hint="a part in quotes ends before a dot")
        quoted, plain, dot = match.groups()
        found.append(plain if quoted is None else quoted[1:-1].replace('""', '"'))
        place = match.end()
    return tuple(found)


def refuse_no_text(text: str, what: str) -> None:
    """Raises UsageError for bytes that are no letters, which Python hands on as halves of pairs of surrogates: no
    record, no list of files and no catalog could name them.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        hint = "name it otherwise; letters beyond ASCII need a locale that knows them, such as LC_ALL=C.UTF-8"
        raise UsageError(f"{what} holds bytes that are no text: {text!r:.200}", hint=hint) from None


def without_quoted(text: str) -> str:
    """Returns what of a text is not inside of double quotes."""
    return _QUOTED.sub("", text)


def is_location(text: str) -> bool:
    """Tells whether a text is a path or a URI: it has a slash, and not only inside of a quoted part; or it is this very
    folder or the one above.
    """
    return "/" in without_quoted(text) or text in (".", "..")


def is_pattern(text: str) -> bool:
    """Tells whether a text stands for all tables of such names. A location never does, nor a sign within quotes."""
    return not is_location(text) and any(sign in without_quoted(text) for sign in "*?[")
