"""One canonical identity per object, so that no two spellings of a path are ever compared as strings.

Two rules keep this safe. Identities only ever merge spellings (s3a and s3, doubled slashes), so an error here
makes a file look needed, never unneeded. And the spelling that the metadata used stays beside the identity: it,
not the identity, is what a delete names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*):(//([^/]*))?(.*)$", re.DOTALL)
_SAME_SCHEME = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "wasbs": "wasb"}
_SLASHES = re.compile(r"/{2,}")
DOTTED = r"(?:^|[:/])\.\.?(?:/|$)"
"""Matches a path with a segment `.` or `..`; in a syntax that Arrow's expressions understand too."""
_DOTTED = re.compile(DOTTED.replace("$", r"\Z"))
_LONGEST_KNOWN = 4_096
"""A folder with a longer name is parsed again for each object in it: thousands of them would fill the memory."""


class Location(NamedTuple):
    """A parsed location. `authority` is the bucket or host, '' where there is none."""

    scheme: str
    authority: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def parse_location(text: str) -> Location:
    """Returns scheme, authority and path; a bare path is a local file."""
    match = _SCHEME.match(text)
    if not match:
        return Location("file", "", _one_slash(text))
    scheme = match[1].lower()
    authority = (match[3] or "").lower()
    if scheme == "file" and authority == "localhost":
        authority = ""
    return Location(_SAME_SCHEME.get(scheme, scheme), authority, _one_slash(match[4]))


def _one_slash(path: str) -> str:
    joined = _SLASHES.sub("/", path)
    return joined if joined.startswith("/") else "/" + joined


def identity(text: str) -> str:
    """Returns the canonical identity of an object: equal for every spelling of the same object."""
    folder, _, name = text.rpartition("/")
    home = _home(folder) if name and len(folder) <= _LONGEST_KNOWN else None
    return str(parse_location(text)) if home is None else f"{home.identity}/{name}"


def stem_of(text: str) -> str:
    """Returns the identity of a folder with one slash at its end: what all objects in it begin with."""
    name = identity(text)
    return name if name.endswith("/") else name + "/"


def stems_around(folder: str) -> Iterator[str]:
    """Yields the stem of every folder that one lies in, itself the first; a folder is an identity up to a slash."""
    while folder:
        yield folder
        folder = folder[: folder.rstrip("/").rfind("/") + 1]


def known_as(text: str, same: Iterable[tuple[str, str]]) -> str:
    """Returns the identity if the operator says that some folders are one: what lies in the first of a pair counts as
    lying in the second.
    """
    name = identity(text)
    for one, other in same:
        if (name + "/").startswith(stem_of(one)):
            name = stem_of(other) + name[len(stem_of(one)) :]
    return name


def bare_path(text: str) -> str:
    """Returns the path alone, percent signs decoded and letters composed: where two objects have it in common, nobody
    can tell from their names whether they are one.
    """
    return unicodedata.normalize("NFC", unquote(parse_location(text).path))


class Spellings(NamedTuple):
    """What an object is compared by: its identity, and its bare path."""

    identity: str
    path: str


def spellings(text: str) -> Spellings:
    """Returns `identity` and `bare_path` of an object: equal to them, and quick for many objects of a few folders."""
    folder, _, name = text.rpartition("/")
    is_plain = name and name.isascii() and "%" not in name and len(folder) <= _LONGEST_KNOWN
    home = _home(folder) if is_plain else None
    if home is None:
        return Spellings(identity(text), bare_path(text))
    return Spellings(f"{home.identity}/{name}", f"{home.path}/{name}")


@lru_cache(maxsize=4_096)
def _home(folder: str) -> Spellings | None:
    """Returns what a folder adds to a plain name in it; None where the name would read differently without it."""
    parsed = parse_location(folder)
    return None if parsed.path.endswith("/") else Spellings(str(parsed), bare_path(folder))


def is_dotted(text: str) -> bool:
    """Tells whether a path has a segment `.` or `..`.

    Some stores walk such a segment and others take it for a name, so one object may have two identities: a caller
    that decides what is needed must refuse it.
    """
    return _DOTTED.search(text) is not None


def within(root: str, text: str) -> bool:
    """Tells whether an object lies under a folder; `…/t` does not contain `…/t2/x`."""
    return identity(text).startswith(identity(root).rstrip("/") + "/")


def join(root: str, *parts: str) -> str:
    return "/".join([root.rstrip("/"), *(part.strip("/") for part in parts)])
