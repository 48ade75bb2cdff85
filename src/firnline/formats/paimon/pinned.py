"""A table as it was when somebody read it first, as long as only snapshots on top came since.

Nothing in a Paimon folder is a version that could be read again: its files come and go. A query that looks at a table
more than once names the digest of its first look. Snapshots and schemas that were added since are put aside one after
the other, the newest first, until the digest is the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from firnline.errors import TableMoved
from firnline.formats.paimon import fields, names
from firnline.formats.paimon.folder import Files
from firnline.model.locations import join

_VERSION = re.compile(r"(.+)#([0-9a-f]{32})", re.DOTALL)
_MOST_ASIDE = 1_000


def version_name(files: Files, location: str) -> str:
    """Returns the name of a version: the table's place, and a digest of every file that is more than a hint."""
    return f"{location}#{_digest(_digests(files).values())}"


def place_of(version: str) -> tuple[str, str | None]:
    """Returns the table's place and the digest of one of its versions; None where only a place was named."""
    match = _VERSION.fullmatch(version)
    return (match[1], match[2]) if match else (version, None)


def as_it_was(files: Files, location: str, digest: str) -> Files:
    """Returns the files of the version with this digest. Raises TableMoved where they are not all there any more."""
    left, digests = dict(files), _digests(files)
    oldest_first = sorted((when, path) for path, text in files.items() if (when := _written_ms(path, text, location)))
    for _ in range(_MOST_ASIDE):
        if _digest(digests.values()) == digest:
            return left
        if not oldest_first:
            break
        _, path = oldest_first.pop()
        del left[path], digests[path]
    raise TableMoved(f"{location} changed while it was being read", hint="ask again")


def _written_ms(path: str, text: str, location: str) -> int:
    """Returns when a snapshot or schema was written; 0 for what cannot simply be put aside."""
    known = names.numbered(names.split_branch(path)[1])
    if known is None:
        return 0
    return fields.whole_or_none(fields.parse(text, join(location, path)), "timeMillis", path) or 0


def _digests(files: Files) -> dict[str, bytes]:
    told = {path: text for path, text in files.items() if not names.is_hint(path)}
    return {path: hashlib.sha256(f"{path}\0{text}".encode()).digest() for path, text in told.items()}


def _digest(each: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(sorted(each))).hexdigest()[:32]
