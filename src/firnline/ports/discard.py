"""Throwing away what firnline itself wrote and nobody needs any more. Table files cannot be named here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from firnline.errors import RefusedForSafety
from firnline.model.locations import join


@dataclass(frozen=True, slots=True)
class OwnKey:
    """An object in one of firnline's own folders: only such a value can be discarded."""

    folder: str
    name: str

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name or self.name in (".", ".."):
            raise RefusedForSafety(f"{self.name!r} is no name of an own object", hint="this is a bug; please report it")

    def __str__(self) -> str:
        return join(self.folder, self.name)


class Discard(Protocol):
    def discard(self, keys: Sequence[OwnKey]) -> None:
        """Removes own objects. What cannot be removed stays; it does no harm."""
        ...
