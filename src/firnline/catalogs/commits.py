"""Commits that move a pointer to an object that was written first: SQL catalogs and path tables."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from firnline.errors import AlreadyExists, ObjectNotFound
from firnline.ports.catalogs import Attempt, Step, Still, SwapOutcome, TableName, Version, always
from firnline.ports.formats import Amendment
from firnline.ports.stores import Get, ReadWrite

if TYPE_CHECKING:
    from firnline.catalogs.sql import SqlCatalog


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
        return False  # it was removed although the log names it: it cannot tell any more


def is_named(location: str, now: Version) -> bool:
    """Tells whether a version lies at the location, or one before it did."""
    log = now.document.get("metadata-log") or ()
    return now.location == location or any(entry.get("metadata-file") == location for entry in log)


def version_between(proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
    """Returns a version that changes nothing, where the table still stands at the base of one of these attempts."""
    return Amendment() if any(proof["base"] == now.location for proof in proofs) else None


class SqlCommits:
    """The write side of a SQL catalog.

    A metadata object that a lost race leaves behind is named by nothing: it is garbage from the start, and the process
    that suggested its name may discard it.
    """

    def __init__(self, catalog: SqlCatalog, store: ReadWrite) -> None:
        self._catalog = catalog
        self._store = store

    def prepare(self, table: TableName, step: Step) -> Attempt:
        """Returns the step under its suggested name: any will do that was never used before."""
        return Attempt(table, step, proof_of(step.base.location, step.suggested, step.data))

    def commit(self, attempt: Attempt) -> SwapOutcome:
        """Writes the data and moves the row. Raises AlreadyExists where the name holds other data already."""
        base, new = attempt.proof["base"], attempt.proof["location"]
        if self._catalog.locate(attempt.table) != base:
            return SwapOutcome.LOST
        self._write(new, attempt.step.data)
        return self._catalog.swap(attempt.table, base, new)

    def landed(self, proof: Mapping[str, Any], now: Version, still: Still = always) -> bool:
        return is_in_log(self._store, proof, now)

    def fence(self, proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
        return version_between(proofs, now)

    def _write(self, new: str, data: bytes) -> None:
        try:
            self._store.put_if_absent(new, data)
        except AlreadyExists:
            if self._store.get(new) != data:  # equal: the same commit is being sent again
                raise
