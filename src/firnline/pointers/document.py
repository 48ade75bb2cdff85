"""A pointer as a value, and the JSON that says it. What is not understood is an error; unknown keys are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from firnline.errors import BadTimestamp, UnreadableMetadata, UsageError
from firnline.model.locations import is_dotted, parse_location
from firnline.model.names import parts_of
from firnline.model.snapshots import MAIN
from firnline.model.times import parse_instant
from firnline.pointers.ordinals import ordinal_ms

VERSION = 1
LARGEST = 1 << 20
"""Bytes: no pointer comes near, and one object must not fill a reader's memory."""

PUBLISH_AGAIN = "`firnline pointers sync` publishes it again; or remove the file, if no reader goes by it"
REMOVE = "remove the file; where a policy asks for a pointer, `firnline pointers sync` writes it again"
"""For what cannot be read: nobody can tell whose it is, so no publisher replaces it."""

_NEEDED = ("version", "table_identifier", "guid", "metadata_file_path", "Ordinal")
_OWN = ("branch", "published_by", "renamed_to", "dropped_at", "expires_at")


class NoPointer(UnreadableMetadata):
    """The file names no metadata at all: whatever it is, no reader gets anywhere by it."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """What one file says: this table's metadata is there.

    `published_by` tells the catalog that it was taken from. `renamed_to` is the name of the file in the same folder
    that goes on for this one; `dropped_at` says that the table is gone. Either stays until `expires_at`.
    """

    table_identifier: str
    guid: str
    metadata_file_path: str
    ordinal: str
    branch: str = MAIN
    published_by: str = ""
    renamed_to: str | None = None
    dropped_at: str | None = None
    expires_at: str | None = None
    others: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether it does not speak of a table of this name any more."""
        return self.renamed_to is not None or self.dropped_at is not None

    @property
    def parts(self) -> tuple[str, ...]:
        """Returns the table's name, level by level; a text that is none as it is: no table has that name."""
        try:
            return parts_of(self.table_identifier)
        except UsageError:
            return (self.table_identifier,)

    def to_json(self) -> dict[str, Any]:
        """Returns the keys in the order of the file; those without a value are left out."""
        needed = (VERSION, self.table_identifier, self.guid, self.metadata_file_path, self.ordinal)
        branch = None if self.branch == MAIN else self.branch
        own = (branch, self.published_by or None, self.renamed_to, self.dropped_at, self.expires_at)
        told = {key: value for key, value in zip(_OWN, own, strict=True) if value is not None}
        return {**dict(zip(_NEEDED, needed, strict=True)), **told, **self.others}

    def to_bytes(self) -> bytes:
        return _bytes(self.to_json())


def _bytes(told: Mapping[str, Any]) -> bytes:
    return (json.dumps(told, indent=2, ensure_ascii=False) + "\n").encode()


def parse_pointer(data: bytes, where: str) -> Pointer:
    """Returns the pointer in a file. Raises UnreadableMetadata, with the file and what is wrong with it."""
    try:
        return _pointer(_object(data))
    except (UnreadableMetadata, BadTimestamp) as problem:
        kind = NoPointer if isinstance(problem, NoPointer) else UnreadableMetadata
        raise kind(f"{where} is no pointer: {problem.message}", hint=problem.flags or REMOVE) from None


def _object(data: bytes) -> dict[str, Any]:
    if len(data) > LARGEST:
        raise too_large(len(data))
    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=_once)
        _bytes(found)  # half of a character, or lists in lists: unknown keys are kept, so what is read must be writable
    except (ValueError, RecursionError) as error:
        raise NoPointer(f"it is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise NoPointer("it is JSON, but no object")
    if "metadata_file_path" not in found:
        raise NoPointer("metadata_file_path is missing")
    return found


def too_large(size: int) -> NoPointer:
    return NoPointer(f"it has {size:,} bytes, and a pointer at most {LARGEST:,}")


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for at, (key, _) in enumerate(pairs) if key in [name for name, _ in pairs[:at]])
        raise UnreadableMetadata(f"the key {twice!r} is written twice")
    return found


def _pointer(found: dict[str, Any]) -> Pointer:
    version = found.pop("version", None)
    if type(version) is not int or version != VERSION:
        said = "it has no version" if version is None else f"its version is {version!r}"
        raise UnreadableMetadata(f"{said}; known is {VERSION}", hint="a newer firnline may know it")
    if "Ordinal" in found and "ordinal" in found:
        raise UnreadableMetadata("it has both Ordinal and ordinal")
    needed = [_text(found, key) for key in ("table_identifier", "guid", "metadata_file_path")]
    ordinal = _text(found, "Ordinal" if "Ordinal" in found else "ordinal")
    own = {key: _text(found, key) for key in _OWN if key in found}
    pointer = Pointer(needed[0], _guid(needed[1]), _absolute(needed[2]), ordinal, **own, others=found)
    _check_times(pointer)
    return pointer


def _text(found: dict[str, Any], key: str) -> str:
    value = found.pop(key, None)
    if not isinstance(value, str) or not value:
        raise UnreadableMetadata(f"{key} is missing" if value is None else f"{key} is {value!r}, and no text")
    return value


def _guid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise UnreadableMetadata(f"guid is {text[:60]!r}, and no UUID") from None


def _absolute(path: str) -> str:
    where = parse_location(path)
    is_absolute = path.startswith("/") or (":/" in path and where.scheme != "")
    if not is_absolute or is_dotted(path):
        raise UnreadableMetadata(f"metadata_file_path is {path[:200]!r}, and no absolute path")
    return path


def _check_times(pointer: Pointer) -> None:
    ordinal_ms(pointer.ordinal)
    for text in (pointer.dropped_at, pointer.expires_at):
        if text is not None:
            parse_instant(text)
    if pointer.renamed_to is not None and ("/" in pointer.renamed_to or pointer.renamed_to in (".", "..")):
        raise UnreadableMetadata(f"renamed_to is {pointer.renamed_to[:200]!r}, and no name of a file beside it")
