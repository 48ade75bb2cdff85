"""One process at a time works on a table: a lease as a log of numbered claims.

Each claim, renewal and release is a new object, written with put-if-absent: of racing processes exactly one gets the
next number, on any store that honours conditional writes. The holder stops before its claim runs out; others wait a
margin beyond it. Between the two lies the time that a request in flight may still take.

Others are seldom told everything, so there are three ways to know that a claim is over, and how long to wait then:

1. Its end, by the wall's clock, with the margin and all that two machines' clocks may differ by.
2. On the machine that wrote it, its end by the clock that this boot started: no difference, and nobody sets it.
3. There, too, the process is gone. Nothing more is sent; what it sent last lands within the margin, since no request
   lasts longer. On local files nothing is on its way at all.

The second and third hold for what the process did itself. Where it lent its time to executors, only the first does.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from firnline.errors import AlreadyExists, FirnlineError, LeaseHeld, ObjectNotFound, OutcomeUnknown, UnreadableMetadata
from firnline.model.locations import join, parse_location
from firnline.model.times import MINUTE_MS, SECOND_MS, second
from firnline.ports.progress import Progress, Silent
from firnline.ports.stores import Get, List, PutIfAbsent

if TYPE_CHECKING:
    from firnline.ports.discard import OwnKey

_ENDED = ("Z", "X")
"""States of what is dead: waiting to be asked how it ended, or on its way out of the list."""


def this_process() -> str:
    """Returns a name for this process that no other process ever has."""
    return f"{socket.gethostname()}:{os.getpid()}:{_home()}:{_started(os.getpid())}:{secrets.token_hex(4)}"


def is_certainly_gone(owner: str) -> bool:
    """Tells whether the named process ran on this very machine since it was booted, and runs no more.

    Host names and process ids are not enough: two containers may have the same of both. The boot, the namespace of
    process ids and the time of the start are compared too; where any of them cannot be read, nothing is certain.
    """
    match owner.rsplit(":", 4):
        case [_, pid, home, started, _] if pid.isdigit() and home and started:
            return home == _home() and not _may_live(int(pid), started)
        case _:
            return False


def _may_live(pid: int, started: str) -> bool:
    shown = _started(pid)
    return shown == started and not _has_ended(pid) if shown else _is_hidden(pid)


def _has_ended(pid: int) -> bool:
    """Tells whether nothing of a process runs any more, and only its parent has not asked how it ended."""
    try:
        return all(_fields(task / "stat")[0] in _ENDED for task in Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return False


def _is_hidden(pid: int) -> bool:
    """Tells whether a process of that number lives although /proc does not show it, as some systems are set up."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def boot() -> str:
    """Returns what names this start of the machine, and whose clock of it is seen here; '' where nothing tells."""
    try:
        clock = Path("/proc/self/ns/time").stat().st_ino  # containers may be given a clock that was moved
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}/{clock}"
    except OSError:
        return ""


def boot_ms() -> int:
    """Returns the time since the machine was started. It goes on while the machine is suspended."""
    steady = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(steady) // 1_000_000


def _home() -> str:
    """Returns this boot and this namespace of process ids; '' where the system does not tell."""
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{started}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Returns when a process was started, in ticks since the boot; '' where there is no such process."""
    try:
        return _fields(Path(f"/proc/{pid}/stat"))[19]
    except OSError:
        return ""


def _fields(stat: Path) -> list[str]:
    """Returns what /proc says of a process after its name, which may hold anything; its state comes first."""
    return stat.read_text().rpartition(")")[2].split()


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
    """One object of the log. `boot` names the start of the machine that wrote it, and `boot_until_ms` its end by the
    clock of that start; `lent`: others than the owner may still work on its behalf, wherever they are.
    """

    number: int
    owner: str
    until_ms: int
    released: bool = False
    lent: bool = False
    boot: str = ""
    boot_until_ms: int = 0

    def to_bytes(self) -> bytes:
        return json.dumps({name: value for name, value in asdict(self).items() if name != "number"}).encode()


class Lease:
    """A held lease. `check` before every request that changes anything; `renew` as often as you like."""

    def __init__(
        self,
        store: LeaseStore,
        folder: str,
        times: LeaseTimes,
        owner: str,
        now: Callable[[], int],
        progress: Progress | None = None,
    ) -> None:
        self._store = store
        self._folder = folder
        self._times = times
        self._now = now
        self._progress = progress or Silent()
        self.owner = owner
        self._lent = False
        self._claim: Claim | None = None
        self._safe_until = 0.0
        self._writing = threading.Lock()

    @property
    def key(self) -> str:
        """The newest claim's object: what the store says of its time tells whether the clocks agree."""
        number = 0 if self._claim is None else self._claim.number
        return join(self._folder, f"{number:012d}.json")

    def acquire(self, break_it: bool = False) -> None:
        """Takes the lease. Raises LeaseHeld, saying until when, while another process may be working.

        After a process of this machine that died, the lease is ours at once, and nothing is sent before what that one
        sent has landed: another process that comes meanwhile finds a claim of the living.
        """
        latest = latest_claim(self._store, self._folder)
        pause_ms = 0 if latest is None or latest.released or break_it else self._pause_after(latest)
        self._write(latest.number + 1 if latest else 1, released=False)
        self._let_land(pause_ms)

    def _pause_after(self, claim: Claim) -> int:
        """Returns for how long nothing may be sent although the claim is over. Raises LeaseHeld where it may not be."""
        free_at = claim.until_ms + self._times.margin_ms + self._times.skew_ms
        if self._now() > free_at or self._ran_out_here(claim):
            return 0
        if not claim.lent and is_certainly_gone(claim.owner):
            return 0 if parse_location(self._folder).scheme == "file" else self._times.margin_ms
        until = second(free_at - self._times.skew_ms if self._is_of_here(claim) else free_at)
        raise LeaseHeld(
            f"another process ({claim.owner}) works on this table until {until} UTC",
            hint="wait, or add --break-lease if that process is certainly gone",
        )

    def _ran_out_here(self, claim: Claim) -> bool:
        """Tells whether the claim is over by the very clock of the machine that wrote it, which is this one."""
        return self._is_of_here(claim) and boot_ms() > claim.boot_until_ms + self._times.margin_ms

    def _is_of_here(self, claim: Claim) -> bool:
        return not claim.lent and claim.boot != "" and claim.boot == boot()

    def _let_land(self, pause_ms: int) -> None:
        total = pause_ms // SECOND_MS
        for passed in range(total):
            self._progress.step("waiting for what a process that died here may have sent (s)", passed, total)
            time.sleep(1)
        time.sleep(pause_ms % SECOND_MS / SECOND_MS)

    def check(self) -> None:
        """Raises LeaseHeld from a margin before the claim's end on: then it is not safe to send a request any more.

        Three clocks are asked, so that a process that was frozen finds its time used up when it wakes: two that nobody
        can set back, of which one stands still while a machine is suspended, and the wall's, by which others go.
        """
        if not self._is_safe():
            raise LeaseHeld("the lease on this table ran out; nothing more was sent", hint="`firnline resume` goes on")

    def lend(self) -> int:
        """Returns for how long work may go on in places that cannot `check`: until this claim's end, and half of what
        others wait beyond it for clocks that differ, since the clock over there may be another again.

        The claim says so first: executors go on for a while when their driver is gone, and a server of Spark Connect
        does so by design. Raises LeaseHeld where the lease ran out.
        """
        with self._writing:
            self.check()
            if self._claim is not None and not self._lent:
                self._lent = True
                self._write(self._claim.number + 1, released=False)
        return 0 if self._claim is None else self._claim.until_ms + self._times.skew_ms // 2 - self._now()

    def _is_safe(self) -> bool:
        if self._claim is None or time.monotonic() >= self._safe_until:
            return False
        if boot_ms() >= self._claim.boot_until_ms - self._times.margin_ms:
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
        was used and discarded meanwhile, and would hold a lease that another process holds too.
        """
        latest = latest_claim(self._store, self._folder)
        if latest is not None and latest.number > number:
            self._safe_until = 0.0
            raise LeaseHeld("another process took the lease on this table", hint="wait and try again")

    def superseded(self) -> list[OwnKey]:
        """Returns the claims that no longer say anything: a few stay, so that the newest is never among them. What is
        no claim is not ours, wherever a table says that its records are.
        """
        from firnline.ports.discard import OwnName, own_keys

        claims = own_keys(self._folder, self._store.list(self._folder), OwnName.CLAIM)
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
        length = self._times.length_ms
        claim = Claim(number, self.owner, self._now() + length, released, self._lent, boot(), boot_ms() + length)
        key = join(self._folder, f"{number:012d}.json")
        try:
            self._store.put_if_absent(key, claim.to_bytes())
        except (AlreadyExists, OutcomeUnknown) as unclear:
            if not _is_ours(self._store, key, claim, unclear):
                self._safe_until = 0.0
                raise LeaseHeld("another process took the lease on this table", hint="wait and try again") from unclear
        self._refuse_old_number(number)
        self._claim = claim
        self._safe_until = begun + (self._times.length_ms - self._times.margin_ms) / SECOND_MS


def latest_claim(store: LeaseStore, folder: str) -> Claim | None:
    """Returns the newest claim. One that cannot be read stops: it may hold the lease."""
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
        until, released, lent = int(said["until_ms"]), bool(said["released"]), bool(said["lent"])
        return Claim(number, str(said["owner"]), until, released, lent, str(said["boot"]), int(said["boot_until_ms"]))
    except (ValueError, KeyError, TypeError) as damage:
        raise _damaged(key, damage) from damage


def _is_ours(store: Get, key: str, claim: Claim, unclear: FirnlineError) -> bool:
    """Tells whose write it was. Raises what made it unclear where no claim is there: a full disk is to be named."""
    try:
        return _read(store, key, claim.number) == claim
    except ObjectNotFound:
        if isinstance(unclear, AlreadyExists):
            return False  # it is another's, and discarded by now
        raise unclear from None


def _damaged(key: str, damage: Exception) -> UnreadableMetadata:
    return UnreadableMetadata(f"the lease {key} is damaged: {damage}", hint="remove it if nobody works here")
