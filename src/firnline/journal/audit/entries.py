"""One entry of the audit log: who did what to which run, after which entry.

    LOCATION/_firnline/audit/000000/000000001.json     a thousand in each folder, so that the last is found quickly

Each entry has the SHA-256 of the whole object before it; so one hash stands for all that came before. Where the
operator has a key for records, each entry is sealed with it too: then only those who have the key can write one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from firnline.errors import UnreadableMetadata
from firnline.journal.events import Sealing, Shape, misfit
from firnline.journal.layout import FOLDER
from firnline.model.locations import join

VERSION = 1
PER_FOLDER = 1_000
_STAMP = "audit log"
_NAME = re.compile(r"([0-9]{6,})/([0-9]{9,})\.json\Z")
_SHAPE: Shape = {
    "version": int,
    "number": int,
    "before": str,
    "write_id": str,
    "who": {"user": str, "host": str, "process": str},
    "news": {"run": str, "table": str, "kind": str, "to": str, "at": str, "figures": dict, "words": dict},
    "seal": str,
}


def audit_root(location: str) -> str:
    """Returns the folder of the entries. No search for orphans ever takes anything from it."""
    return join(location, FOLDER, "audit")


def folder_of(root: str, number: int) -> str:
    return join(root, f"{(number - 1) // PER_FOLDER:06d}")


def key_of(root: str, number: int) -> str:
    return join(folder_of(root, number), f"{number:09d}.json")


def number_in(key: str) -> int | None:
    """Returns the number of the entry that an object of this name has to be; None for a name that no entry has."""
    found = _NAME.search(key)
    if found is None:
        return None
    number = int(found[2])
    is_right = number > 0 and key.endswith(f"{(number - 1) // PER_FOLDER:06d}/{number:09d}.json")
    return number if is_right else None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """What the log says in one place. `before` is the hash of the entry before, '' in the first."""

    number: int
    before: str
    write_id: str
    who: Mapping[str, str]
    news: Mapping[str, Any]
    seal: str = ""

    def said(self) -> dict[str, Any]:
        """Returns all of it as JSON, except the seal."""
        return {"version": VERSION, "number": self.number, "before": self.before, "write_id": self.write_id,
                "who": dict(self.who), "news": dict(self.news)}  # fmt: skip

    def sealed(self, sealing: Sealing) -> AuditEntry:
        return replace(self, seal=sealing.over(_STAMP, self.before, self.said()))

    def is_sealed_with(self, sealing: Sealing) -> bool:
        return sealing.holds(self.seal, _STAMP, self.before, self.said())

    def to_bytes(self) -> bytes:
        return json.dumps({**self.said(), "seal": self.seal}, indent=1).encode()


def hash_of(data: bytes) -> str:
    """Returns what the entry after this object has as `before`."""
    return sha256(data).hexdigest()


def parse_entry(data: bytes, key: str) -> AuditEntry:
    """Returns the entry. Raises UnreadableMetadata where it is none, or one of a later version."""
    try:
        said = json.loads(data)
        wrong = misfit(said, _SHAPE)
        if wrong is None and said["version"] != VERSION:
            wrong = "version that is known here"
        if wrong is not None:
            raise ValueError(f"it has no {wrong}, or a strange one")
    except (ValueError, RecursionError) as damage:
        raise UnreadableMetadata(f"the audit entry {key} is damaged: {damage}", hint="restore it") from damage
    return AuditEntry(*(said[name] for name in ("number", "before", "write_id", "who", "news", "seal")))
