"""A file that names others, as it was read, and the paths in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from firnline.formats.avro.encoded import sized, text_at
from firnline.ports.relocating import Place

Sizes = Mapping[str, int]
"""How large files are where they lie now, by the paths that the live table has for them."""


@dataclass(frozen=True, slots=True)
class MovedPaths:
    """The places of paths. Each is asked for once: a file of deletes says the same path for every row."""

    place: Place
    _known: dict[str, str] = field(default_factory=dict)

    def of(self, path: str) -> str:
        found = self._known.get(path)
        if found is None:
            found = self._known[path] = self.place.place(path)
        return found

    def of_encoded(self, value: bytes, _: int) -> bytes:
        """Returns the same of a path as Avro writes it. Raises CorruptAvro."""
        path, _ = text_at(value, 0)
        return sized(self.of(path).encode())

    def refuse_disorder(self) -> None:
        """Raises UnsupportedFormat where the places may have another order than the paths: readers of position deletes
        rely on it.
        """
        if self._known:
            self.place.bounds(min(self._known), max(self._known))


@dataclass(frozen=True, slots=True)
class NamingFile:
    """A file that was read. `sized` are the paths of files whose sizes it tells and that were rewritten themselves;
    `written` returns its bytes with the paths moved, and these sizes.
    """

    written: Callable[[MovedPaths, Sizes], bytes]
    sized: Collection[str] = ()
