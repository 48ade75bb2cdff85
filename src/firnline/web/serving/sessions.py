"""Who is at the page: a person who showed the token, for some hours; kept in memory alone."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

LONGEST_S = 12 * 3600
_MOST = 1_000


def is_same(said: str, secret: str) -> bool:
    """Tells whether two texts are the same, in a time that does not depend on where they differ."""
    return hmac.compare_digest(said.encode(), secret.encode())


@dataclass(frozen=True, slots=True)
class Session:
    """A person by the name given, and the word that each form of this person has to have."""

    who: str
    csrf: str
    until_s: float


@dataclass
class Sessions:
    """The sessions of a process. A new start ends all."""

    clock: Callable[[], float] = time.monotonic
    _open: dict[str, Session] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def begin(self, who: str) -> str:
        """Returns the name of a new session, which nobody can guess."""
        name = secrets.token_urlsafe(32)
        with self._lock:
            now = self.clock()
            kept = {key: each for key, each in self._open.items() if each.until_s > now}
            self._open = dict(list(kept.items())[-_MOST:])
            self._open[name] = Session(who, secrets.token_urlsafe(32), now + LONGEST_S)
        return name

    def find(self, name: str | None) -> Session | None:
        found = self._open.get(name or "")
        return found if found is not None and found.until_s > self.clock() else None

    def end(self, name: str | None) -> None:
        with self._lock:
            self._open.pop(name or "", None)
