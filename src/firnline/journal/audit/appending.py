"""Appending to the audit log: any number of processes and threads, none of which loses an entry of another.

1. Two processes both saw entry 7 as the last, and both write entry 8.
2. A write goes through only if nothing has the name yet: one of them wins, and the other hears that it lost.
3. The loser reads entry 8, which its own must follow, and writes entry 9.

A process that is killed has written its entry whole, or not at all.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple, Protocol

from firnline.errors import (
    AlreadyExists,
    AuditUnwritable,
    FirnlineError,
    Interrupted,
    ObjectNotFound,
    OutcomeUnknown,
    StoreError,
)
from firnline.journal.audit.entries import (
    PER_FOLDER,
    AuditEntry,
    folder_of,
    hash_of,
    key_of,
    number_in,
)
from firnline.journal.events import UNSEALED, Sealing
from firnline.patience import Patience
from firnline.ports.observing.news import News
from firnline.ports.stores import Get, Head, List, PutIfAbsent, is_there


class AuditStore(Get, Head, List, PutIfAbsent, Protocol):
    pass


class ChainEnd(NamedTuple):
    """The last entry of a log: its number, and the hash that the next one has to have."""

    number: int
    hash: str


EMPTY = ChainEnd(0, "")
_PATIENCE = Patience(attempts=500, base_delay_s=0.002, max_delay_s=0.2, budget_s=60.0)


@dataclass
class AuditLog:
    """The log at `root`. `who` is this process. `last` is the end as this process knows it."""

    store: AuditStore
    root: str
    who: Mapping[str, str]
    sealing: Sealing = UNSEALED
    last: ChainEnd | None = None
    _writing: Any = field(default_factory=Lock, init=False, repr=False)

    def attest(self, news: News) -> None:
        """Appends news. Raises AuditUnwritable where that is not possible: what they tell of must not be done."""
        try:
            self.append(news.to_json())
        except Interrupted:
            raise
        except FirnlineError as problem:
            raise AuditUnwritable(
                f"the audit log {self.root} cannot be written: {problem.message}; {news.run} stays as it is",
                hint="make it writable, then `firnline resume` goes on; without `audit:` nothing is written there",
            ) from problem

    def append(self, news: Mapping[str, Any]) -> ChainEnd:
        """Returns the end of the log, now this entry. Raises StoreError unless it is durable."""
        with self._writing:
            last = self.last or find_end(self.store, self.root)
            for pause in _PATIENCE.pauses():
                ours, last = self._try(last, news)
                self.last = last
                if ours:
                    return last
                time.sleep(pause)
        raise StoreError(f"too many others write to {self.root} at once", hint="try again")

    def _try(self, last: ChainEnd, news: Mapping[str, Any]) -> tuple[bool, ChainEnd]:
        """Returns whether our entry is the one after `last`, and where the log ends then."""
        number = last.number + 1
        entry = AuditEntry(number, last.hash, secrets.token_hex(8), self.who, news).sealed(self.sealing)
        data, key = entry.to_bytes(), key_of(self.root, number)
        try:
            self.store.put_if_absent(key, data)
        except (AlreadyExists, OutcomeUnknown) as unclear:  # a lost answer, or another's entry: it is read back
            if not self._is_ours(key, data, unclear):
                return False, _end_from(self.store, self.root, number)
        return True, ChainEnd(number, hash_of(data))

    def _is_ours(self, key: str, data: bytes, unclear: FirnlineError) -> bool:
        try:
            return self.store.get(key) == data
        except ObjectNotFound:
            raise unclear from None


def find_end(store: AuditStore, root: str) -> ChainEnd:
    """Returns the last entry of the log; EMPTY if there is none. Asks for one entry of some folders and lists the last
    folder, not the whole log.
    """
    if not _begins(store, root, 0):
        return _end_in(store, root, 0) or EMPTY
    last = 1
    while _begins(store, root, last):
        last *= 2
    first = last // 2  # this folder was begun, `last` was not
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if _begins(store, root, middle) else (first, middle)
    return _end_in(store, root, first) or EMPTY


def _begins(store: AuditStore, root: str, folder: int) -> bool:
    return is_there(store, key_of(root, folder * PER_FOLDER + 1))


def _end_from(store: AuditStore, root: str, number: int) -> ChainEnd:
    """Returns the last entry of the folder in which an entry is that another process wrote."""
    found = _end_in(store, root, (number - 1) // PER_FOLDER)
    if found is None or found.number < number:
        return ChainEnd(number, hash_of(store.get(key_of(root, number))))
    return found


def _end_in(store: AuditStore, root: str, folder: int) -> ChainEnd | None:
    listed = store.list(folder_of(root, folder * PER_FOLDER + 1))
    numbers = [number for each in listed if (number := number_in(each.key)) is not None]
    if not numbers:
        return None
    key = key_of(root, max(numbers))
    return ChainEnd(max(numbers), hash_of(store.get(key)))
