"""Commits that move a pointer to an object whose name is known before: SQL catalogs and path tables."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from firnline.errors import ObjectNotFound
from firnline.ports.catalogs import Version
from firnline.ports.formats import Amendment
from firnline.ports.stores import Get


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def proof_of(base: str, location: str, data: bytes) -> dict[str, Any]:
    return {"base": base, "location": location, "digest": digest_of(data)}


def is_in_log(store: Get, proof: Mapping[str, Any], now: Version) -> bool:
    """Tells whether our metadata is, or once was, the table's: the log of every successor names it.

    On a path table another writer's commit may lie under that very name, so the bytes are compared too.
    """
    location = proof["location"]
    try:
        return is_named(location, now) and digest_of(store.get(location)) == proof["digest"]
    except ObjectNotFound:
        return False  # somebody removed it although the log names it: it cannot tell any more


def is_named(location: str, now: Version) -> bool:
    """Tells whether a version lies at the location, or one before it did."""
    log = now.document.get("metadata-log") or ()
    return now.location == location or any(entry.get("metadata-file") == location for entry in log)


def version_between(proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
    """Returns a version that changes nothing, where the table still stands at the base of one of these attempts."""
    return Amendment() if any(proof["base"] == now.location for proof in proofs) else None
