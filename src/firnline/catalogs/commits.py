"""Committing through a SQL catalog: the new metadata is written first, then one row is moved to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firnline.catalogs.pointers import is_in_log, proof_of, version_between
from firnline.catalogs.sql import SqlCatalog
from firnline.errors import AlreadyExists
from firnline.ports.catalogs import Attempt, Step, Still, SwapOutcome, TableName, Version, always
from firnline.ports.formats import Amendment
from firnline.ports.stores import ReadWrite


class SqlCommits:
    """The write side of a SQL catalog.

    A metadata object that a lost race leaves behind is named by nothing: it is garbage from the start, and whoever
    suggested its name may discard it.
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
