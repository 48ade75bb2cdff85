"""The XML of a bulk delete: a thousand names written, and an answer for each of them read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape

_HEAD = '<?xml version="1.0" encoding="UTF-8"?><Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
_OPENING = re.compile(r'(?:<\?xml version="1\.0" encoding="UTF-8"\?>\s*)?<DeleteResult(?: xmlns="[^"<>&]*")?>')
_FIRST, _NEXT, _LAST = "<Deleted><Key>", "</Key></Deleted><Deleted><Key>", "</Key></Deleted></DeleteResult>"


class Said(NamedTuple):
    """The names that a store called deleted, and what it said of each other one; None is a name that it left out."""

    deleted: list[str | None]
    errors: list[dict[str, str]]


def write_request(names: Sequence[str]) -> bytes:
    """Returns the names as a request, each once. They must survive XML."""
    keys = escape("\0".join(dict.fromkeys(names))).replace("\0", "</Key></Object><Object><Key>")
    return f"{_HEAD}<Object><Key>{keys}</Key></Object></Delete>".encode()


def read_answer(body: bytes) -> Said | None:
    """Returns a whole answer; None for half of one, and for anything else."""
    return _plain(body) or _parsed(body)


def _plain(body: bytes) -> Said | None:
    """Returns the answer where all went well and it holds nothing but keys: parsing takes ten times as long.

    The text is cut at the tags between two keys. No key has a tag inside, because the tags outside of them are all
    that there are in the text: so it reads as a parser would read it.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    opening = _OPENING.match(text)
    start = opening.end() if opening else 0
    if not opening or not text.startswith(_FIRST, start) or not text.endswith(_LAST):
        return None
    if "&" in text or "\r" in text:  # entities, and the one character that a parser reads as another
        return None
    keys = text[start + len(_FIRST) : -len(_LAST)].split(_NEXT)
    outside = opening[0].count("<") + _FIRST.count("<") + _LAST.count("<") + (len(keys) - 1) * _NEXT.count("<")
    return Said(list[str | None](keys), []) if text.count("<") == outside else None


def _parsed(body: bytes) -> Said | None:
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        return None
    if not root.tag.endswith("DeleteResult"):
        return None
    space = root.tag.removesuffix("DeleteResult")
    return Said(
        [each.findtext(f"{space}Key") for each in root.findall(f"{space}Deleted")],
        [{part.tag.removeprefix(space): part.text or "" for part in each} for each in root.findall(f"{space}Error")],
    )
