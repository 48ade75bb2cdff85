"""The name of a repository's version: where it lies, and a digest of all that a decision depends on.

No object of version 1 changes with every commit, so there is no pointer that could be compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from firnline.foreign import json_bytes
from firnline.formats.icechunk.reading.repository import IcechunkRepository

_DIGEST = 32


def version_name(repository: IcechunkRepository, properties: Mapping[str, str]) -> str:
    """Returns `LOCATION#DIGEST`: another one for any other ref, history or note."""
    said = {
        "spec": repository.spec,
        "refs": sorted([ref.kind, ref.name, ref.snapshot] for ref in repository.refs),
        "deleted": sorted(repository.deleted_tags),
        "snapshots": sorted([each.id, each.parent, each.flushed_us] for each in repository.snapshots.values()),
        "properties": dict(properties),
    }
    digest = hashlib.sha256(json_bytes(said, sort_keys=True)).hexdigest()[:_DIGEST]
    return f"{repository.location}#{digest}"


def place_of(version: str) -> tuple[str, str | None]:
    """Returns the location and the digest of a version's name; a location alone has no digest."""
    location, sign, digest = version.rpartition("#")
    if sign and len(digest) == _DIGEST and set(digest) <= set("0123456789abcdef"):
        return location, digest
    return version, None
