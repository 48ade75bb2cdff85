"""A cache in this process, and what a damaged or hostile one may answer in place of its entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from firnline.caches.opening import OpenedCache
from firnline.caches.seal import Seal
from firnline.ports.cache import Cache

SECRET = b"a secret that no cache has"

Lie = Callable[[str, dict[str, bytes]], bytes]
"""From the name that is asked for and all entries to what is answered."""


@dataclass
class Ledger:
    """A cache in this process. A lie, once set, answers in place of the entries."""

    entries: dict[str, bytes] = field(default_factory=dict)
    lie: Lie | None = None
    asked: list[str] = field(default_factory=list)

    def get(self, shelf: str, names: Sequence[str]) -> list[bytes | None]:
        self.asked += names
        return [self._said(name) for name in names]

    def put(self, shelf: str, entries: Sequence[tuple[str, bytes]], ttl_s: int) -> None:
        self.entries.update(entries)

    def _said(self, name: str) -> bytes | None:
        if self.lie is None or not self.entries:
            return self.entries.get(name)
        return self.lie(name, self.entries)


def memory_of(cache: Cache, secret: bytes = SECRET) -> OpenedCache:
    return OpenedCache("a test's own", cache, Seal(secret))


def neighbour(step: int) -> Lie:
    """Answers with the entry of another unit, whole and sealed."""

    def lie(key: str, entries: dict[str, bytes]) -> bytes:
        names = sorted(name for name in entries if name != key) or [key]
        return entries[names[(sum(map(ord, key)) + step) % len(names)]]

    return lie


def flipped(place: int, bit: int) -> Lie:
    def lie(key: str, entries: dict[str, bytes]) -> bytes:
        data = bytearray(entries.get(key, b"nothing at all"))
        data[place % len(data)] ^= 1 << bit
        return bytes(data)

    return lie


def cut(length: int) -> Lie:
    return lambda key, entries: entries.get(key, b"")[:length]


def longer(more: bytes) -> Lie:
    return lambda key, entries: entries.get(key, b"") + more


def forged(secret: bytes) -> Lie:
    """Answers with a neighbour's payload under a seal for this very name, made with another secret."""

    def lie(key: str, entries: dict[str, bytes]) -> bytes:
        name, sealed = sorted(entries.items())[-1]
        payload = Seal(SECRET).open(name, sealed)
        assert payload is not None
        return Seal(secret).close(key, payload)

    return lie


LIES = st.one_of(
    st.builds(neighbour, st.integers(0, 30)),
    st.builds(flipped, st.integers(0, 5_000), st.integers(0, 7)),
    st.builds(cut, st.integers(0, 300)),
    st.builds(longer, st.binary(min_size=1, max_size=20)),
    st.builds(forged, st.binary(max_size=40)),
    st.binary(max_size=200).map(lambda said: lambda key, entries: said),
)
