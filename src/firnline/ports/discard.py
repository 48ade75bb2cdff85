"""Throwing away what firnline itself wrote and nobody needs any more. Table files cannot be named here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from firnline.errors import RefusedForSafety
from firnline.model.locations import identity, join, stem_of
from firnline.ports.stores import ObjectMeta


class OwnName(Enum):
    """What firnline writes for itself and throws away again, by the names that it gives."""

    CLAIM = re.compile(r"[0-9]{12}\.json")
    ACCOUNT = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}\.parquet")
    NOTE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.(?:begun|done|given-up)")
    MOMENT = re.compile(r"moment-[0-9a-f]{32}")
    ENTRY = re.compile(r"run-[0-9a-f]{32}\.json")
    BUNDLE = re.compile(r"[0-9a-f]{32}\.tar")
    SEGMENT = re.compile(r"[0-9a-f]{64}\.parquet")
    HISTORY = re.compile(r"(?:expired-snapshots|segment|index)-[0-9a-f-]+\.json")

    def names(self, name: str) -> bool:
        return self.value.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class OwnKey:
    """An object in one of firnline's own folders, with a name that firnline gives: only such a value can be discarded.

    The folder alone would prove nothing: a setting or a table's property may lead to one that is full of other files.
    """

    folder: str
    name: str

    def __post_init__(self) -> None:
        if not any(each.names(self.name) for each in OwnName):
            raise RefusedForSafety(f"{self.name!r} is no name of an own object", hint="this is a bug; please report it")

    def __str__(self) -> str:
        return join(self.folder, self.name)


def own_keys(folder: str, listed: Iterable[ObjectMeta], sort: OwnName) -> list[OwnKey]:
    """Returns those of the listed objects that lie in the folder itself and have a name of this sort."""
    stem = stem_of(folder)
    names = (identity(each.key).removeprefix(stem) for each in listed)
    return [OwnKey(folder, name) for name in names if sort.names(name)]


class Discard(Protocol):
    def discard(self, keys: Sequence[OwnKey]) -> None:
        """Removes own objects. What cannot be removed stays; it does no harm."""
        ...
