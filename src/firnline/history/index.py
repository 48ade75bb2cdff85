"""The index of a history that outgrew one list: which segments hold the older part."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from firnline.history.listing import Entry, parse_list, read_object, unreadable
from firnline.ports.stores import Get

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Segment:
    """One older part: a plain list, and what tells without opening it whether it matters for a time."""

    key: str
    count: int
    size: int
    first_ms: int
    last_ms: int
    sha256: str


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_segment(store: Get, segment: Segment) -> list[Entry]:
    """Returns the snapshots. Raises UnreadableMetadata where its bytes are not those that the index vouches for."""
    data = read_object(store, segment.key)
    if digest_of(data) != segment.sha256:
        raise unreadable(segment.key, "it is not as it was written")
    return parse_list(data, segment.key)


def index_bytes(segments: Sequence[Segment]) -> bytes:
    return json.dumps({"version": _VERSION, "segments": [asdict(each) for each in segments]}, indent=1).encode()


def read_index(store: Get, key: str) -> tuple[Segment, ...]:
    """Returns the segments, oldest first. Raises UnreadableMetadata where the index is missing or not understood."""
    try:
        said = json.loads(read_object(store, key))
        if said["version"] != _VERSION:
            raise ValueError(f"version {said['version']!r} is not understood")
        return tuple(Segment(**each) for each in said["segments"])
    except (ValueError, KeyError, TypeError, RecursionError) as damage:
        raise unreadable(key, damage) from None
