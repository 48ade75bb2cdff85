"""Deleting table files. Only purge code may import this module; the import linter enforces it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Fate(StrEnum):
    DELETED = "deleted"
    MISSING = "missing"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DeleteOutcome:
    """What became of one key. `error` says why where the fate is FAILED."""

    key: str
    fate: Fate
    error: str = ""


class Delete(Protocol):
    def delete(self, keys: Sequence[str]) -> list[DeleteOutcome]:
        """Deletes exactly these objects and returns one outcome per key, in order.

        Never raises for a single key and never deletes a folder or prefix. An object that is not there is MISSING.
        """
        ...


class DeleteMany(Protocol):
    """Carries out a list of deletes at the engine's scale: threads here, or executors."""

    def delete_many(self, keys: Sequence[str], delete: Delete, may_send: Callable[[], None]) -> list[DeleteOutcome]:
        """Returns one outcome per key, in order. `delete` is picklable, so that it may run elsewhere.

        `may_send` is asked here, before anything is sent and as often as possible afterwards; where it raises,
        nothing more is sent.
        """
        ...
