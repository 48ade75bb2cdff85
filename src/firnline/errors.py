"""Every error firnline raises, as one tree, grouped by what a person would do about it.

    FirnlineError
    ├── UsageError            fix the command line or the file you wrote
    │   ├── BadTimestamp
    │   └── PolicyError
    ├── NoSuchTable           name another table
    ├── RefusedForSafety      nothing was changed; the reason names the way out
    │   ├── UnreadableMetadata
    │   ├── UnsupportedFormat
    │   ├── CollectionForbidden
    │   ├── BlastRadiusExceeded
    │   ├── AuditUnwritable
    │   └── TakenUpAgain      stopped: files went that a commit named in that very moment
    ├── LeaseHeld             another process works on this table; wait
    ├── TableMoved            the table is not the one that was planned; plan again
    ├── OutcomeUnknown        read back before doing anything else
    ├── DeletesFailed         rerun
    ├── Interrupted           you stopped it; resume goes on
    └── StoreError            the object store said no

`kind` is stable and part of the JSON output; `exit_code` is part of the command line's contract.
"""

from __future__ import annotations

from typing import ClassVar

from firnline.callers import in_callers_words
from firnline.foreign import concealed


class FirnlineError(Exception):
    """The base of the tree. Carries a message for people, a stable kind, an exit code and a hint.

    `flags` is the hint as the command line has it.
    Whatever a message quotes, the passwords of addresses do not get out with it.
    """

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.flags = concealed(message), concealed(hint)
        super().__init__(self.message, self.flags)

    @property
    def hint(self) -> str:
        """What to do, in words of who called."""
        return in_callers_words(self.flags)

    def __str__(self) -> str:
        return self.message

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "message": self.message, "hint": self.hint}


def told_bug(where: str, bug: Exception) -> FirnlineError:
    """Returns what is told of a mistake of our own. The log has all of it."""
    import logging

    logging.getLogger("firnline").error("%s", where, exc_info=bug)
    return FirnlineError(f"{type(bug).__name__}: {bug}", hint="this is a bug: the log has all of it")


class UsageError(FirnlineError):
    kind = "usage"
    exit_code = 2


class BadTimestamp(UsageError):
    kind = "bad-timestamp"


class PolicyError(UsageError):
    kind = "policy"


class NoSuchTable(FirnlineError):
    kind = "no-such-table"
    exit_code = 10


class LeaseHeld(FirnlineError):
    kind = "lease-held"
    exit_code = 11


class TableMoved(FirnlineError):
    kind = "table-moved"
    exit_code = 12


class OutcomeUnknown(FirnlineError):
    kind = "outcome-unknown"
    exit_code = 13


class RefusedForSafety(FirnlineError):
    kind = "refused"
    exit_code = 14


class UnreadableMetadata(RefusedForSafety):
    """A root or a live unit cannot be read, so nobody can say what it needs."""

    kind = "unreadable"


class UnsupportedFormat(RefusedForSafety):
    """The table uses something this version does not understand."""

    kind = "unsupported"


class CollectionForbidden(RefusedForSafety):
    """The table says that nothing of it may be removed."""

    kind = "collection-forbidden"


class BlastRadiusExceeded(RefusedForSafety):
    kind = "blast-radius"


class TakenUpAgain(RefusedForSafety):
    """A commit named files again in the moment between a batch's last look at the table and its deletes."""

    kind = "taken-up-again"


class ArchiveIncomplete(RefusedForSafety):
    """A tier does not have, complete, what was to be handed to it."""

    kind = "archive-incomplete"


class AwaitsApproval(RefusedForSafety):
    """The policy demands a person's word before so much goes."""

    kind = "awaits-approval"


class AuditUnwritable(RefusedForSafety):
    """The audit log cannot be written, so what it would tell of is not done."""

    kind = "audit-unwritable"


class DeletesFailed(FirnlineError):
    kind = "deletes-failed"
    exit_code = 3


class Interrupted(FirnlineError):
    kind = "interrupted"
    exit_code = 130


class StoreError(FirnlineError):
    """The object store failed for a reason that is not 'no such object'."""

    kind = "store"


class ObjectNotFound(StoreError):
    kind = "object-not-found"


class NoRoom(StoreError):
    """The disk is full. The object certainly was not written; asked again later, there may be room."""

    kind = "no-room"


class PermanentStoreError(StoreError):
    """Asking again cannot help: the key is malformed, the scheme unknown, or the store denies access."""


class NoSuchBucket(PermanentStoreError):
    """The bucket itself is missing, which says nothing about any object."""

    kind = "no-such-bucket"


class BadCredentials(PermanentStoreError):
    """The store does not know these credentials, or there are none."""

    kind = "bad-credentials"


class ExpiredCredentials(PermanentStoreError):
    kind = "expired-credentials"


class AccessDenied(PermanentStoreError):
    """The store knows who asks and says no."""

    kind = "access-denied"


class ObjectFrozen(PermanentStoreError):
    """The object is in an archive class: it must be restored before anybody can read it."""

    kind = "object-frozen"


class Unreachable(StoreError):
    """No answer at all; it may come back."""

    kind = "unreachable"


class AlreadyExists(StoreError):
    """A conditional write lost: another writer owns that name, or this very write was retried."""

    kind = "already-exists"


class ObjectChanged(StoreError):
    """An object is not as it was read: another writer came first."""

    kind = "object-changed"
