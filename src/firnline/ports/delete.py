"""Deleting table files. Who may import this module is listed in pyproject.toml: the contract `deleting-ports`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

MaySend = Callable[[], None]
"""Asked before every request that deletes; where it raises, nothing more is sent."""


Lend = Callable[[], int]
"""Asked before deletes go where `MaySend` cannot be asked: returns for how many ms they may be sent there."""


def always() -> None:
    """Lets every request go: for a deleter that no lease stands behind."""


class Fate(StrEnum):
    DELETED = "deleted"
    MISSING = "missing"
    CHANGED = "changed"
    FAILED = "failed"


class Doomed(NamedTuple):
    """One object that is to go; with an ETag, only while it still is the object that had it."""

    key: str
    etag: str | None = None


class DeleteOutcome(NamedTuple):
    """What became of one key. `error` says why where the fate is FAILED or CHANGED."""

    key: str
    fate: Fate
    error: str = ""


class Delete(Protocol):
    def delete(self, doomed: Sequence[Doomed], may_send: MaySend = always) -> list[DeleteOutcome]:
        """Deletes exactly these objects and returns one outcome per key, in order.

        Never raises for a single key and never deletes a folder or prefix. DELETED means that it is gone now; a store
        that tells says MISSING where it was gone before. CHANGED: another object has the name now, and stays. Raises
        StoreError where no request can succeed any more: the bucket or the credentials are gone.
        """
        ...

    def share(self, parts: int) -> Delete:
        """Returns the same power for one of `parts` that work at once: each gets its part of the budget."""
        ...


class RemoveEmpty(Protocol):
    def remove_empty(self, folder: str) -> bool:
        """Tells whether it removed the folder: only where it is one, and nothing at all is in it. Never raises for
        what is there, and never removes anything with it. False on a store that has no folders.
        """
        ...


class DeleteMany(Protocol):
    """Carries out a list of deletes at the engine's scale: threads here, or executors."""

    @property
    def rows(self) -> int:
        """How many keys one call should bring: enough to keep every thread or task busy."""
        ...

    def delete_many(
        self, doomed: Sequence[Doomed], delete: Delete, may_send: MaySend, lend: Lend | None = None
    ) -> list[DeleteOutcome]:
        """Returns one outcome per key, in order. `delete` is picklable, so that it may run elsewhere.

        `may_send` is asked here, before anything is sent and as often as possible afterwards. Where it cannot be asked,
        `lend` says for how long anything may be sent; None sets no end.
        """
        ...
