"""A repository as the icechunk library opens it: the few verbs of it that a commit is made of.

Whatever the library raises becomes one of firnline's own errors, also a panic of its Rust part, which Python's
`except Exception` does not see. Its collection is never called: what that deletes was in no plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from firnline.errors import FirnlineError, OutcomeUnknown, RefusedForSafety, StoreError
from firnline.foreign import harmless
from firnline.formats.icechunk.committing.access import few_retries, library, storage_at
from firnline.model.snapshots import Ref, RefKind

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REFUSALS = re.compile(
    r"(?:tag|branch) already exists|(?:ref|branch|tag|snapshot|snapshot id) not found|invalid (?:ref name|snapshot id)"
    r"|main branch cannot be deleted|branch update conflict|icechunk does not allow tag reuse"
    r"|this operation is not supported|(?:repository error )?the .{1,50} is read-only",
    re.IGNORECASE,
)
"""How sentences of the library begin by which it has changed nothing; names of 1.x and 2.x."""
_ABSENT = re.compile(r"(?:ref|branch|tag) not found", re.IGNORECASE)
_PANIC = "PanicException"


@dataclass(frozen=True, slots=True)
class LibraryRepository:
    """One repository, opened by the library. It keeps what it read of version 1: open it anew for each commit."""

    location: str
    opened: Any = field(repr=False)

    @staticmethod
    def at(location: str, settings: Mapping[str, str]) -> LibraryRepository:
        """Returns the repository. Raises StoreError where the library does not reach it.

        On local files the library makes the folder if there is none: ask only where firnline has read a repository.
        """
        with _reading(location):
            opened = library().Repository.open(storage_at(location, settings), config=few_retries())
        return LibraryRepository(location, opened)

    def names(self) -> set[tuple[RefKind, str]]:
        """Returns the refs that the library sees: its expiry holds what these point to, and nothing else."""
        with _reading(self.location):
            branches = {(RefKind.BRANCH, str(name)) for name in self.opened.list_branches()}
            return branches | {(RefKind.TAG, str(name)) for name in self.opened.list_tags()}

    def points_to(self, kind: RefKind, name: str) -> str | None:
        """Returns the snapshot that a ref names at this moment; None where there is no such ref."""
        look = self.opened.lookup_branch if kind is RefKind.BRANCH else self.opened.lookup_tag
        with _reading(self.location):
            try:
                return str(look(name))
            except Exception as trouble:
                if _ABSENT.match(_sentence(trouble)):
                    return None
                raise

    def create(self, ref: Ref) -> None:
        """Makes a branch or tag. Raises RefusedForSafety where one of that name is there, or was: a deleted tag's name
        is never given again. The library of 1.x does not look whether the snapshot is there.
        """
        make = self.opened.create_branch if ref.kind is RefKind.BRANCH else self.opened.create_tag
        with _changing(self.location, f"making the {ref.kind} {ref.name}"):
            make(ref.name, ref.snapshot)

    def delete(self, ref: Ref) -> None:
        """Deletes a branch or tag, wherever it points by now: the library has no condition for that."""
        drop = self.opened.delete_branch if ref.kind is RefKind.BRANCH else self.opened.delete_tag
        with _changing(self.location, f"deleting the {ref.kind} {ref.name}"):
            drop(ref.name)

    def expire(self, threshold_us: int) -> set[str]:
        """Expires what is older than the threshold, and deletes no ref. Returns what the library calls released: on
        version 1 also what refs still lead to.
        """
        moment = instant(threshold_us)
        expire: Callable[..., Any] = self.opened.expire_snapshots
        with _changing(self.location, "expiring snapshots"):
            found = expire(moment, delete_expired_branches=False, delete_expired_tags=False)
        return {str(each) for each in found}


def instant(microseconds: int) -> datetime:
    """Returns the moment to the microsecond; no float is on the way. Raises OverflowError where Python has none."""
    return _EPOCH + timedelta(microseconds=microseconds)


@contextmanager
def _telling(told: Callable[[BaseException], FirnlineError]) -> Iterator[None]:
    """Raises whatever the library raises as the error that is told of it."""
    try:
        yield
    except (FirnlineError, GeneratorExit):
        raise
    except BaseException as trouble:
        if not _is_of_library(trouble):
            raise
        raise told(trouble) from trouble


def _reading(location: str) -> AbstractContextManager[None]:
    return _telling(
        lambda trouble: StoreError(
            f"the icechunk library does not read {location}: {_sentence(trouble)}",
            hint="nothing was changed by this; check that the library reaches the same store as firnline",
        )
    )


def _changing(location: str, what: str) -> AbstractContextManager[None]:
    return _telling(lambda trouble: _told(trouble, f"{what} in {location}"))


def _told(trouble: BaseException, what: str) -> FirnlineError:
    """Returns the library's trouble with a change: a refusal only where its sentence is one of those. Anything else may
    have been done, or half of it.
    """
    said = _sentence(trouble)
    if type(trouble).__name__ != _PANIC and _REFUSALS.match(said):
        return RefusedForSafety(f"the icechunk library refused {what}: {said}", hint="the library changed nothing")
    return OutcomeUnknown(f"the icechunk library broke off {what}: {said}", hint="`firnline resume` reads it back")


def _is_of_library(trouble: BaseException) -> bool:
    """Tells whether this is the library's, a panic too: that is no Exception, and can be told by its name only."""
    return isinstance(trouble, Exception) or type(trouble).__name__ == _PANIC


def _sentence(trouble: BaseException) -> str:
    """Returns the first line of what the library says, without the signs that it draws around it."""
    lines = [line for line in str(trouble).splitlines() if line.strip()]
    first = re.sub(r"^\s*[×x]\s+", "", lines[0]).strip() if lines else type(trouble).__name__
    return harmless(first)
