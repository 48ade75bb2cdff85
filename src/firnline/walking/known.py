"""Units that need not be opened, by sixteen bytes each; and an Expand that leaves them closed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from firnline.model.files import File
from firnline.model.locations import identity
from firnline.ports.expanding import Expanded, Remembering, Together, Wrapping, joined
from firnline.ports.stores import shared

MOST_KNOWN = 2_000_000
"""Units, of sixteen bytes each: 32 MB here, and with each task that walks."""
_CHUNKS = 16

Pairs = np.ndarray[tuple[int, int], np.dtype[np.uint64]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


class KnownUnits:
    """Remembers units by a digest: two names share one as seldom as anybody finds a second text for a digest.

    It holds no more than `most`. A unit that it does not hold is opened again, which costs time and hides nothing.
    """

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._chunks: list[Pairs] = []

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def add(self, names: Iterable[str]) -> None:
        """Remembers these identities, as far as there is room; those that are known take no more of it."""
        asked = np.unique(_digests(names), axis=0)
        new = asked[~self._has(asked)][: self._most - len(self)]
        if len(new):
            self._chunks.append(new)
        if len(self._chunks) > _CHUNKS:
            every = np.concatenate(self._chunks)
            self._chunks = [every[np.argsort(every[:, 0])]]

    def among(self, names: Iterable[str]) -> Flags:
        """Tells of each identity whether it is known."""
        return self._has(_digests(names))

    def _has(self, asked: Pairs) -> Flags:
        found = np.zeros(len(asked), dtype=bool)
        for chunk in self._chunks:
            at = np.minimum(np.searchsorted(chunk[:, 0], asked[:, 0]), len(chunk) - 1)
            found |= (chunk[at] == asked).all(axis=1)
        return found


def _digests(names: Iterable[str]) -> Pairs:
    data = b"".join(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest() for name in names)
    return np.frombuffer(data, dtype="<u8").reshape(-1, 2)


@dataclass(frozen=True, slots=True)
class Unopened(Wrapping):
    """Opens units, but for those that are known: these name only themselves. Picklable if the other Expand is.

    Only for units that take nothing away: of a file that one of them removes, another one says nothing.
    """

    known: KnownUnits

    def share(self, parts: int) -> Unopened:
        return Unopened(shared(self.expand, parts), self.known)

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        return self.expand(units, together)

    def recalled(self, units: Sequence[File], together: Together = map) -> tuple[list[int], Expanded] | None:
        seen = self.known.among(identity(unit.key) for unit in units)
        closed, rest = np.flatnonzero(seen).tolist(), np.flatnonzero(~seen).tolist()
        parts: list[tuple[Sequence[int], Expanded]] = []
        if closed:
            parts.append((closed, _themselves([units[number] for number in closed])))
        told = self._recalled([units[number] for number in rest], together)
        if told is not None:
            parts.append((rest, told[1]))
            closed = [*closed, *(rest[number] for number in told[0])]
        return (closed, joined(parts)) if parts else None

    def _recalled(self, units: Sequence[File], together: Together) -> tuple[list[int], Expanded] | None:
        return self.expand.recalled(units, together) if units and isinstance(self.expand, Remembering) else None


def _themselves(units: Sequence[File]) -> Expanded:
    columns: dict[str, Any] = {
        "identity": pa.array([identity(unit.key) for unit in units], pa.string()),
        "key": pa.array([unit.key for unit in units], pa.string()),
        "size": pa.array([unit.size for unit in units], pa.int64()),
        "kind": pa.array([unit.kind.value for unit in units], pa.string()),
        "opens": pa.array([False] * len(units), pa.bool_()),
    }
    return Expanded(pa.record_batch(columns), np.arange(len(units)))
