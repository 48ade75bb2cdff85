"""The checksum of a copy, in the form that its store tells by itself where it does. Pure.

    md5:HEX              S3, written in one request: its ETag is the md5 of the bytes
    md5/SIZE:HEX-COUNT   S3, written in parts of SIZE bytes: its ETag is the md5 of the parts' md5s, and how many
    etag:TEXT            S3, of an archive class that tags otherwise: what was sent was seen to arrive, and has this tag
    sha256:HEX           everywhere else: only reading tells

What follows the colon of the first three is the ETag, so one HEAD sees whether the object is still the same. Where a
store tags otherwise (SSE-KMS, another server), the same checksum is computed from the bytes. All of them are against
damage, not against a person who may write to the tier.

S3 itself, and servers that follow it, also tell a CRC64 of the whole object, in however many parts it was written and
however it is encrypted. It is no form of its own: only stores compute it, and two that tell the same have the same
bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import md5, sha256
from typing import NamedTuple, Protocol

from firnline.errors import PermanentStoreError
from firnline.stores.local import Piece

PART_BYTES = 8 << 20
"""Of a request that reads or writes a piece of an object: what a thread holds of one, however large it is."""
MOST_PARTS = 10_000
"""What S3 takes for one object."""
_MIB = 1 << 20
_TAG = re.compile(r'"?([0-9a-f]{32})(?:-([1-9][0-9]{0,4}))?"?')
_FORM = re.compile(r"md5|sha256|md5/([1-9][0-9]{0,12})")

MD5, SHA256, ETAG = "md5", "sha256", "etag"


class Md5Tag(NamedTuple):
    """An ETag that reads like an md5; `parts` is how many the object was written in, None: not in parts."""

    text: str
    parts: int | None


def md5_tag(etag: str | None) -> Md5Tag | None:
    """Returns what an ETag of S3 says; None where it is no md5 by its looks. One of an object that is encrypted with a
    key of KMS looks the same and is none: two that are equal are of equal bytes, and two that differ say nothing.
    """
    found = _TAG.fullmatch(etag or "")
    if found is None:
        return None
    return Md5Tag(found[0].strip('"'), None if found[2] is None else int(found[2]))


def part_size(size: int, usual: int = PART_BYTES) -> int:
    """Returns in parts of how many bytes an object is written: the usual, more where that gives too many of them."""
    least = -(-size // MOST_PARTS)
    return usual if least <= usual else -(-least // _MIB) * _MIB


def in_parts(part: int) -> str:
    """Returns the form of a checksum of an object that was written in parts."""
    return f"{MD5}/{part}"


def part_of(checksum: str | None) -> int | None:
    """Returns in parts of how many bytes an object of this checksum was written; None: not in parts."""
    form, _, part = form_of(checksum or "").partition("/")
    return int(part) if form == MD5 and part else None


def form_of(checksum: str) -> str:
    return checksum.partition(":")[0]


def is_tag(checksum: str, etag: str | None) -> bool:
    """Tells whether the store's ETag is this very checksum."""
    form, _, said = checksum.partition(":")
    found = md5_tag(etag)
    if form == ETAG:
        return bool(etag) and checksum == as_tagged(etag)
    return found is not None and form.startswith(MD5) and found.text == said


def as_tagged(etag: str | None) -> str:
    """Returns the checksum of an object of which only the store's tag can tell that it is still the same."""
    return f"{ETAG}:{(etag or '').strip(chr(34))}"


def told_in_parts(part: int, etag: str) -> str:
    """Returns the checksum that an ETag is of an object that was written in parts of this size."""
    tag = md5_tag(etag)
    return as_tagged(etag) if tag is None else f"{in_parts(part)}:{tag.text}"


def of_whole(crc64: str | None, kind: str | None) -> str | None:
    """Returns a CRC64 of which the store says that it is of the whole object; None where it does not say so."""
    return crc64 if crc64 and kind == "FULL_OBJECT" else None


def of_parts(part: int, md5s: Sequence[bytes]) -> str:
    """Returns the checksum of an object that was written in parts of which these are the md5s."""
    total = md5(b"".join(md5s), usedforsecurity=False).hexdigest()
    return f"{in_parts(part)}:{total}-{len(md5s)}"


class GrowingChecksum(Protocol):
    """A checksum that grows with every piece."""

    def update(self, piece: Piece, /) -> None: ...

    def checksum(self) -> str: ...


def summing(form: str) -> GrowingChecksum:
    """Returns an empty checksum of a form. Raises PermanentStoreError for a form that is none: a later version's."""
    found = _FORM.fullmatch(form)
    if found is None:
        raise PermanentStoreError(f"{form!r} is no checksum that this version knows", "update firnline")
    return _InParts(int(found[1])) if found[1] else _Whole(form)


def summed(pieces: Iterable[Piece], form: str) -> str:
    """Returns the checksum of all pieces."""
    total = summing(form)
    for piece in pieces:
        total.update(piece)
    return total.checksum()


class _Whole:
    def __init__(self, form: str) -> None:
        self._form = form
        self._sum = md5(usedforsecurity=False) if form == MD5 else sha256()
        self.update = self._sum.update

    def checksum(self) -> str:
        return f"{self._form}:{self._sum.hexdigest()}"


class _InParts:
    """Cuts at its own borders, whatever the pieces are."""

    def __init__(self, part: int) -> None:
        self._part = part
        self._done: list[bytes] = []
        self._sum = md5(usedforsecurity=False)
        self._left = part

    def update(self, piece: Piece) -> None:
        rest = memoryview(piece)
        while rest:
            self._sum.update(rest[: self._left])
            taken = min(self._left, len(rest))
            self._left -= taken
            rest = rest[taken:]
            if not self._left:
                self._close()

    def checksum(self) -> str:
        if self._left < self._part or not self._done:
            self._close()
        return of_parts(self._part, self._done)

    def _close(self) -> None:
        self._done.append(self._sum.digest())
        self._sum, self._left = md5(usedforsecurity=False), self._part
