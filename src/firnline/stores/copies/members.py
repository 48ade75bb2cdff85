"""Members of bundles, each read by itself and seen to be what was packed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from firnline.errors import ObjectChanged, StoreError
from firnline.patience import Patience
from firnline.ports.packing import PackedFile
from firnline.ports.stores import ObjectMeta
from firnline.stores.copies.checksums import PART_BYTES, form_of, summing
from firnline.stores.copies.contents import Contents, Opened
from firnline.stores.copies.route import COPY_PATIENCE, OneStore
from firnline.stores.keys import Key, object_key
from firnline.stores.local import Piece
from firnline.stores.throttle import Throttle

_MOST_KNOWN = 4_096


@dataclass
class Members:
    """Opens members of bundles of one store. A bundle is never written again, so it is looked at once for many."""

    contents: Contents
    _seen: dict[str, ObjectMeta] = field(default_factory=dict, init=False, repr=False)

    def open(self, packed: PackedFile) -> Opened:
        """Returns a member. Its last piece is followed by StoreError where the whole is not what was packed: all of
        them must be asked for before anything gets a name.
        """
        key = object_key(packed.bundle)
        meta = self._bundle(key)
        if packed.offset < 0 or packed.size < 0 or packed.offset + packed.size > meta.size:
            raise StoreError(f"{packed.bundle!r} has {meta.size:,} bytes, and {packed.place!r} would lie beyond them")
        opened = self.contents.span(key, meta, packed.offset, packed.size)
        return opened._replace(pieces=lambda piece: self._proven(opened.pieces(piece), packed))

    def _bundle(self, key: Key) -> ObjectMeta:
        if key.text not in self._seen:
            if len(self._seen) >= _MOST_KNOWN:
                self._seen = {}
            self._seen[key.text] = self.contents.requests.head(key)
        return self._seen[key.text]

    def _proven(self, pieces: Iterator[Piece], packed: PackedFile) -> Iterator[Piece]:
        total = summing(form_of(packed.checksum))
        try:
            for piece in pieces:
                total.update(piece)
                yield piece
        except ObjectChanged:
            self._seen.pop(packed.bundle, None)
            raise
        if total.checksum() != packed.checksum:
            raise StoreError(f"{packed.place!r} is not what was packed: {packed.bundle!r} is damaged")


class ObjectMembers(OneStore):
    """Reads members of one store's bundles; each is held whole."""

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        throttle: Throttle | None = None,
        patience: Patience = COPY_PATIENCE,
    ) -> None:
        super().__init__(properties, throttle=throttle, patience=patience)
        self._members = Members(Contents(self._requests))

    def get(self, packed: PackedFile) -> bytes:
        return b"".join(self._members.open(packed).pieces(PART_BYTES))
