"""Walking what a tier does not have yet: a manifest that lies there was written after all that it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from firnline.model.files import File, FileKind
from firnline.ports.expanding import Expanded, Together, Wrapping
from firnline.ports.relocating import Place
from firnline.ports.stores import Head, is_there, shared


@dataclass(frozen=True, slots=True)
class NewInTier(Wrapping):
    """Opens units, but for manifests that the tier has: neither these nor what they name have to be copied again.

    It is a shortcut of the copies alone: before the commit the whole of what was handed over is walked in the tier.
    """

    place: Place
    target: Head

    def share(self, parts: int) -> NewInTier:
        return replace(self, expand=shared(self.expand, parts), target=shared(self.target, parts))

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        is_there = list(together(self._is_there, units))
        due = [number for number, there in enumerate(is_there) if not there]
        return self.expand([units[number] for number in due], together).numbered(due)

    def _is_there(self, unit: File) -> bool:
        return unit.kind is FileKind.MANIFEST and is_there(self.target, self.place.place(unit.key))
