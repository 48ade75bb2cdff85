"""Copying a table's files to another place, and the verdict on each copy."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from firnline.ports.catalogs import Still, always


class CopyFate(StrEnum):
    COPIED = "copied"
    PRESENT = "present"
    FAILED = "failed"


class CopyJob(NamedTuple):
    """One file that a place shall hold too. `size` is what its table says, None where it does not; `kind` is the value
    of its FileKind.
    """

    source: str
    target: str
    size: int | None
    kind: str


class CopyOutcome(NamedTuple):
    """What became of one copy. `size` and `checksum` are those of what lies at the target now; `checksum` names its way
    (`sha256:…`). `error` says why where the fate is FAILED.
    """

    target: str
    fate: CopyFate
    size: int = 0
    checksum: str = ""
    error: str = ""


class Stored(NamedTuple):
    """A copy as it was seen to be, and must still be when its source may go."""

    target: str
    size: int
    checksum: str


class Copy(Protocol):
    """Makes copies that are seen to be whole. Picklable, so that it may run elsewhere."""

    def copy(self, jobs: Sequence[CopyJob], still: Still = always) -> list[CopyOutcome]:
        """Returns one outcome per job, in order; never raises for a single one.

        COPIED: the object was written here and what lies there was seen to be the source's bytes. PRESENT: it lay there
        already, and was seen to be the same. An object that is there and differs is FAILED and stays as it is: nothing
        is ever overwritten. Half a copy is never seen under the target's name. `still` is asked before each write, and
        raises if the sender may not any more.

        Raises StoreError where no request can succeed any more: the bucket or the credentials are gone.
        """
        ...

    def share(self, parts: int) -> Copy:
        """Returns the same for one of `parts` that work at once: each gets its part of the pace."""
        ...


class Verify(Protocol):
    """Looks at copies again. Picklable, so that it may run elsewhere."""

    def verify(self, copies: Sequence[Stored]) -> list[CopyOutcome]:
        """Returns one outcome per copy, in order: PRESENT where it lies there as it was seen to be, with the size and
        checksum that were handed in, else FAILED with the reason. Never raises for a single one; what cannot be read
        is FAILED.

        The store's own word counts where it is that very checksum; everything else is read.

        Raises StoreError where no request can succeed any more: the bucket or the credentials are gone.
        """
        ...

    def share(self, parts: int) -> Verify:
        """Returns the same for one of `parts` that work at once: each gets its part of the pace."""
        ...


class CopyMany(Protocol):
    """Carries out a list of copies, or of looks at them, at the engine's scale: threads here, or executors."""

    @property
    def rows(self) -> int:
        """How many jobs one call should bring: enough to keep every thread or task busy."""
        ...

    def copy_many(self, jobs: Sequence[CopyJob], copy: Copy, still: Still = always) -> list[CopyOutcome]:
        """Returns one outcome per job, in order. `still` is asked here, before anything is sent and as often as
        possible afterwards.
        """
        ...

    def verify_many(self, copies: Sequence[Stored], verify: Verify) -> list[CopyOutcome]:
        """Returns one outcome per copy, in order."""
        ...
