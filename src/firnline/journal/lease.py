"""One process at a time works on a table: a lease as a log of numbered claims.

Each claim, renewal and release is a new object, written with put-if-absent: of racing processes exactly one gets
the next number, on any store that honours conditional writes. The holder stops before its claim runs out; others
wait a margin beyond it. Between the two lies the time that a request in flight may still take.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from firnline.errors import AlreadyExists, FirnlineError, LeaseHeld, OutcomeUnknown, UnreadableMetadata
from firnline.journal.processes import is_certainly_gone
from firnline.model.locations import join, parse_location
from firnline.model.times import MINUTE_MS, SECOND_MS, format_instant
from firnline.ports.discard import Own, OwnKey, own_keys
from firnline.ports.stores import Get, List, PutIfAbsent

_CLAIMS_KEPT = 8
LARGEST_SKEW_MS = 5 * MINUTE_MS
"""By how much clocks may differ: a run refuses to work on a machine whose clock is further off the store's."""


class LeaseStore(Get, List, PutIfAbsent, Protocol):
    pass


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long a claim lasts, the margin on both sides of its end, and by how much two machines' clocks may differ.

    A claim's end is told by its holder's clock and judged by another's: who takes over waits out the difference too.
    """

    length_ms: int = 120 * SECOND_MS
    margin_ms: int = 30 * SECOND_MS
    skew_ms: int = 2 * LARGEST_SKEW_MS


@dataclass(frozen=True, slots=True)
class Claim:
    number: int
    owner: str
    until_ms: int
    released: bool = False

    def to_bytes(self) -> bytes:
        said = {"owner": self.owner, "until_ms": self.until_ms, "released": self.released}
        return json.dumps(said).encode()


class Lease:
    """A held lease. `check` before every request that changes anything; `renew` as often as you like."""

    def __init__(self, store: LeaseStore, folder: str, times: LeaseTimes, owner: str, now: Callable[[], int]) -> None:
        self._store = store
        self._folder = folder
        self._times = times
        self._now = now
        self.owner = owner
        self._claim: Claim | None = None
        self._safe_until = 0.0
        self._writing = threading.Lock()

    @property
    def key(self) -> str:
        """The newest claim's object: what the store says of its time tells whether the clocks agree."""
        number = 0 if self._claim is None else self._claim.number
        return join(self._folder, f"{number:012d}.json")

    def acquire(self, break_it: bool = False) -> None:
        """Takes the lease. Raises LeaseHeld, saying until when, while another process may be working."""
        latest = latest_claim(self._store, self._folder)
        if latest is not None and not latest.released and not break_it:
            free_at = latest.until_ms + self._times.margin_ms + self._times.skew_ms
            if self._now() <= free_at and not self._died_here(latest):
                raise LeaseHeld(
                    f"another process ({latest.owner}) works on this table until {format_instant(free_at)}",
                    hint="wait, or add --break-lease if that process is certainly gone",
                )
        self._write(latest.number + 1 if latest else 1, released=False)

    def _died_here(self, claim: Claim) -> bool:
        """Tells whether the claim's process died on this machine, with nothing of it left on its way.

        Local files take effect before a process can die; a request to a remote store may still be travelling.
        """
        return parse_location(self._folder).scheme == "file" and is_certainly_gone(claim.owner)

    def check(self) -> None:
        """Returns while it is safe to send a request; raises LeaseHeld from a margin before the claim's end.

        Two clocks are asked, so that a process that was frozen finds its time used up when it wakes: the monotonic
        one, which nobody can set back, and the wall's, since the other stands still while a machine is suspended.
        """
        if not self._is_safe():
            raise LeaseHeld("the lease on this table ran out; nothing more was sent", hint="`firnline resume` goes on")

    def left_ms(self) -> int:
        """Returns for how long work may go on in places that cannot `check`: until this claim's end, and half of what
        others wait beyond it for clocks that differ, since the clock over there may be another again.
        """
        return 0 if self._claim is None else self._claim.until_ms + self._times.skew_ms // 2 - self._now()

    def _is_safe(self) -> bool:
        if self._claim is None or time.monotonic() >= self._safe_until:
            return False
        return self._now() < self._claim.until_ms - self._times.margin_ms

    def renew(self) -> None:
        """Extends the claim when half of it is used. Raises LeaseHeld where another process took over."""
        with self._writing:
            self.check()
            half = (self._times.length_ms - self._times.margin_ms) / 2 / SECOND_MS
            if self._claim is not None and self._safe_until - time.monotonic() < half:
                self._write(self._claim.number + 1, released=False)

    def release(self) -> None:
        """Lets others work at once. A lease that was lost meanwhile is nobody's to release; one whose release could
        not be written runs out by itself. Neither may hide what became of the work.
        """
        with self._writing:
            if self._claim is not None and self._is_safe():
                with suppress(FirnlineError):
                    self._write(self._claim.number + 1, released=True)
            self._claim, self._safe_until = None, 0.0

    def let_run_out(self) -> None:
        """Gives the lease up without releasing it: others wait until whatever was sent has arrived or never will.

        The claim is written once more under a name that is no process: a catalog elsewhere may still act on what a
        process sent that is certainly gone by then.
        """
        self.owner = f"a commit without an answer, by {self.owner.replace(':', ' ')}"
        with self._writing, suppress(FirnlineError):
            if self._claim is not None and self._is_safe():
                self._write(self._claim.number + 1, released=False)
        self._claim, self._safe_until = None, 0.0

    def _refuse_old_number(self, number: int) -> None:
        """Raises where newer claims exist: a process that slept between looking and writing may get a number that
        was used and discarded meanwhile, and would hold a lease that somebody else holds too.
        """
        latest = latest_claim(self._store, self._folder)
        if latest is not None and latest.number > number:
            self._safe_until = 0.0
            raise LeaseHeld("another process took the lease on this table", hint="wait and try again")

    def superseded(self) -> list[OwnKey]:
        """Returns the claims that no longer say anything: a few stay, so that the newest is never among them. What is
        no claim is not ours, wherever a table says that its records are.
        """
        claims = own_keys(self._folder, self._store.list(self._folder), Own.CLAIM)
        return sorted(claims, key=lambda each: each.name)[:-_CLAIMS_KEPT]

    @contextmanager
    def heartbeat(self) -> Iterator[None]:
        """Renews in the background for the time of the block, so that one long step does not outlive its claim.

        A process that was frozen longer than its claim cannot renew: its time is used up when it wakes, and every
        `check` says so. A renewal that fails leaves the claim to run out by itself, which `check` sees too.
        """
        done = threading.Event()
        pause = self._times.length_ms / 4 / SECOND_MS

        def beat() -> None:
            while not done.wait(pause):
                with suppress(FirnlineError):
                    self.renew()

        thread = threading.Thread(target=beat, name="firnline-heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _write(self, number: int, released: bool) -> None:
        begun = time.monotonic()
        claim = Claim(number, self.owner, self._now() + self._times.length_ms, released)
        key = join(self._folder, f"{number:012d}.json")
        try:
            self._store.put_if_absent(key, claim.to_bytes())
        except (AlreadyExists, OutcomeUnknown) as unclear:
            if _read(self._store, key, number) != claim:
                self._safe_until = 0.0
                raise LeaseHeld("another process took the lease on this table", hint="wait and try again") from unclear
        self._refuse_old_number(number)
        self._claim = claim
        self._safe_until = begun + (self._times.length_ms - self._times.margin_ms) / SECOND_MS


def latest_claim(store: LeaseStore, folder: str) -> Claim | None:
    """Returns the newest claim. One that cannot be read stops: it may be somebody's."""
    keys = [each.key for each in store.list(folder) if each.key.endswith(".json")]
    if not keys:
        return None
    newest = max(keys)
    return _read(store, newest, _number(newest))


def _number(key: str) -> int:
    try:
        return int(key.rpartition("/")[2].removesuffix(".json"))
    except ValueError as strange:
        raise _damaged(key, strange) from strange


def _read(store: Get, key: str, number: int) -> Claim:
    try:
        said = json.loads(store.get(key))
        return Claim(number, str(said["owner"]), int(said["until_ms"]), bool(said["released"]))
    except (ValueError, KeyError, TypeError) as damage:
        raise _damaged(key, damage) from damage


def _damaged(key: str, damage: Exception) -> UnreadableMetadata:
    return UnreadableMetadata(f"the lease {key} is damaged: {damage}", hint="remove it if nobody works here")
