"""Faults between firnline and the world: what dies, loses, repeats, delays, throttles or acts in between.

A fault sees every request of one process, whatever port it goes through, and counts them together:

    fault = Dying(at=7, when="after")
    process = world.process(fault)        # store, delete, commits, catalog: all pass through the fault
    with pytest.raises(Died):
        process.expire(...)

`at` counts from 1. Faults that are about durable effects (Dying, Losing, Duplicating, Delaying) count only requests
that change something: each object written or deleted, each commit. Acting and Throttling count every request.
A run under `Counting` says how many of either there are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any, Generic, Literal, Protocol, TypeVar

from firnline.errors import FirnlineError, StoreError

Answer = TypeVar("Answer")
When = Literal["before", "after"]

CHANGES = frozenset({"put", "put_if_absent", "put_if_match", "delete", "discard", "commit"})
"""Verbs that leave something behind. Their number in an operation is the number of places where it can be cut."""


class Died(BaseException):
    """The process is gone: no handler of any FirnlineError, and no clean-up, runs any further."""


@dataclass(frozen=True, slots=True)
class PortRequest(Generic[Answer]):
    """One request on its way. `silence` is what the caller sees when no answer comes."""

    verb: str
    key: str
    send: Callable[[], Answer]
    silence: Callable[[], Answer]

    @property
    def changes(self) -> bool:
        return self.verb in CHANGES


class Fault(Protocol):
    """Decides what becomes of a request."""

    def pass_on(self, request: PortRequest[Answer]) -> Answer: ...


class NoFault:
    """Every request goes straight through."""

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        return request.send()


def no_answer(verb: str, key: str) -> StoreError:
    return StoreError(f"no answer to {verb} {key}", hint="a fault that a test injected")


@dataclass
class CountingFault:
    """Lets everything pass and remembers it: `effects` and `requests` say how far a fault's `at` can go."""

    trace: list[tuple[str, str]] = field(default_factory=list)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        self.trace.append((request.verb, request.key))
        return request.send()

    @property
    def requests(self) -> int:
        return len(self.trace)

    @property
    def effects(self) -> int:
        return sum(verb in CHANGES for verb, _ in self.trace)


@dataclass
class _AtEffect:
    """Counts requests that change something, over all ports and threads; `verb` counts only that verb's."""

    at: int
    verb: str | None = field(default=None, kw_only=True)
    count: int = field(default=0, init=False)
    lock: Any = field(default_factory=RLock, init=False, repr=False)

    def is_due(self, request: PortRequest[Answer]) -> bool:
        if not request.changes or self.verb not in (None, request.verb):
            return False
        with self.lock:
            self.count += 1
            return self.count == self.at


@dataclass
class Dying(_AtEffect):
    """The process dies at the n-th durable effect, just before it or just after it took place.

    From then on every request raises Died, also those of a `finally`: a dead process releases nothing.
    """

    when: When = "before"
    dead: bool = field(default=False, init=False)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if self.dead:
            raise Died(f"dead before {request.verb} {request.key}")
        if not self.is_due(request):
            return self._alive(request.send())
        if self.when == "after":
            request.send()
        self.dead = True
        raise Died(f"died {self.when} {request.verb} {request.key}")

    def _alive(self, answer: Answer) -> Answer:
        """Returns the answer, unless the process died while a request inside this one was sent."""
        if self.dead:
            raise Died("died meanwhile")
        return answer


@dataclass
class Freezing(_AtEffect):
    """The process is frozen with the n-th durable effect on its lips: it is sent when the process wakes.

    To the caller it looks like dying. `wake` sends that one request, as a process does that checked its lease just
    before it was frozen; then it is dead.
    """

    asleep: Callable[[], Any] | None = field(default=None, init=False)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if self.asleep is None and not self.is_due(request):
            return request.send()
        self.asleep = self.asleep or request.send
        raise Died(f"frozen before {request.verb} {request.key}")

    def wake(self) -> None:
        """Sends what was to be sent; whatever is answered, the process goes no further."""
        send, self.asleep = self.asleep, None
        assert send is not None, "the process was never frozen"
        with suppress(FirnlineError):
            send()


class Losing(_AtEffect):
    """The n-th durable effect takes place, but its answer never comes."""

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if not self.is_due(request):
            return request.send()
        request.send()
        return request.silence()


class Duplicating(_AtEffect):
    """The n-th durable effect is sent twice and the second answer is seen, as after a retry below the client."""

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if self.is_due(request):
            request.send()
        return request.send()


@dataclass
class Delaying(_AtEffect):
    """The n-th durable effect is not answered and takes place later: after `by` more requests, or at `land()`."""

    by: int | None = None
    _waiting: Callable[[], Any] | None = field(default=None, init=False)
    _left: int = field(default=0, init=False)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        with self.lock:
            if self._waiting is not None and self.by is not None:
                self._left -= 1
                if self._left <= 0:
                    self.land()
        if not self.is_due(request):
            return request.send()
        self._waiting, self._left = request.send, self.by or 0
        return request.silence()

    def land(self) -> None:
        """Lets the request arrive now, if it has not: whatever it then answers, nobody listens."""
        late, self._waiting = self._waiting, None
        if late is not None:
            with suppress(StoreError):
                late()


@dataclass
class NeverAnswered:
    """No request of one verb is answered any more. They are on their way all the same, and arrive at `land()`."""

    verb: str
    waiting: list[Callable[[], Any]] = field(default_factory=list, init=False)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if request.verb != self.verb:
            return request.send()
        self.waiting.append(request.send)
        return request.silence()

    def land(self) -> None:
        """Lets them arrive, in the order of sending."""
        late, self.waiting, self.verb = self.waiting, [], ""
        for send in late:
            with suppress(StoreError):
                send()


@dataclass
class BothFaults:
    """Two faults at once: the first sees a request before the second does."""

    first: Fault
    second: Fault

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        return self.first.pass_on(replace(request, send=lambda: self.second.pass_on(request)))


@dataclass
class Throttling:
    """Every n-th request of any kind is turned away; nothing of it takes place."""

    every: int
    count: int = field(default=0, init=False)
    _lock: Any = field(default_factory=RLock, init=False, repr=False)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        with self._lock:
            self.count += 1
            turned_away = self.count % self.every == 0
        return request.silence() if turned_away else request.send()


@dataclass
class Acting:
    """Another process acts just before the n-th request of any kind: between any two steps.

    `before` is the request that came next, once the action took place; None if the operation ended before. `blind`
    are the objects deleted after the action and before the table was looked at again: no store can tell a delete to
    wait for a commit, so a path that is taken up again in just that moment is lost, and only such a path.
    """

    at: int
    action: Callable[[], Any]
    count: int = field(default=0, init=False)
    before: tuple[str, str] | None = field(default=None, init=False)
    blind: list[str] = field(default_factory=list, init=False)
    _looked: bool = field(default=False, init=False)
    _lock: Any = field(default_factory=RLock, init=False, repr=False)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        with self._lock:
            self.count += 1
            if self.count == self.at:
                self.before = (request.verb, request.key)
                self.action()
            self._watch(request.verb, request.key)
        return request.send()

    def _watch(self, verb: str, key: str) -> None:
        if self.before is not None:
            self._looked = self._looked or verb == "locate"
            if verb == "delete" and not self._looked:
                self.blind.append(key)
