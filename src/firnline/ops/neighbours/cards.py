"""What is remembered of a table, and of the units that were opened to find it; and how both are written down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firnline.errors import PermanentStoreError
from firnline.model.files import File, FileKind
from firnline.ops.neighbours.folders import Folders, OwnFolders
from firnline.ports.catalogs import TableName
from firnline.ports.stores import RealNames

if TYPE_CHECKING:
    from firnline.ops.neighbours.outward import Bridge, Bridges, Walked

LinksOf = Callable[[OwnFolders], "str | None"]
"""Returns what the links are known by that lie below a table's own folders; None where they cannot be told."""
_LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Card:
    """One table by the metadata that it was read from. `bridges` are those out of `own`, which is None before the table
    was walked, and if it names files by links: those change.

    `over_ms` is the end of the last hold that counted as over, None if none did:

    1. A machine whose clock is ahead plans: a neighbour's hold is over, and what it keeps is not among the bridges.
    2. The clock is set right, or another machine recalls the card. The neighbour's metadata is still the same.
    3. A purge that believes the card deletes what the hold keeps.

    So the bridges are only true after that end.

    `links` is what the links below `own` were known by when it was walked: under others, a file may be another one.
    """

    metadata: str
    uuid: str
    folders: Folders
    own: OwnFolders | None = None
    bridges: Bridges = ()
    over_ms: int | None = None
    links: str = ""

    def tells_bridges(self, own: OwnFolders, now_ms: int, real: RealNames, links_of: LinksOf) -> bool:
        """Tells whether these are the bridges out of `own` at that instant, by the links that are there now. No
        folder is read for a table that is walked anyway.
        """
        is_over = self.over_ms is None or now_ms > self.over_ms
        is_same = self.own == own and is_over
        return is_same and self.links == links_of(own) and all(is_where_it_was(each, real) for each in self.bridges)


def is_where_it_was(bridge: Bridge, real: RealNames) -> bool:
    """Tells whether what a bridge leads to is still where it was.

    1. A table is walked: it needs a file of a folder that is nobody's.
    2. That folder, or the file alone, is moved into another table's, and a link is left behind. No metadata changes.
    3. The other table takes the file in, and expires it.

    What may not be seen any more counts as moved: who walks the table again says so.
    """
    try:
        return all(real(folder) == folder and not real.has_links(folder) for folder in bridge.folders)
    except PermanentStoreError:
        return False


def cards_to_bytes(cards: Iterable[tuple[TableName, Card]]) -> bytes:
    """Returns the cards of one catalog, each after its table's catalog, namespace and name."""
    return json.dumps([[name.catalog, name.namespace, name.name, _card_json(card)] for name, card in cards]).encode()


def cards_from_bytes(said: bytes) -> Iterator[tuple[TableName, Card]]:
    for catalog, namespace, name, card in json.loads(said):
        yield TableName(catalog, tuple(namespace), name), _card(card)


def walked_to_bytes(walked: Walked) -> bytes:
    leads = {digest.hex(): [_bridge_json(each) for each in bridges] for digest, bridges in walked.leads.items()}
    text = json.dumps(leads).encode()
    return len(text).to_bytes(_LENGTH_BYTES, "big") + text + b"".join(sorted(walked.units))


def walked_from_bytes(said: bytes) -> Walked:
    from firnline.ops.neighbours.outward import DIGEST_BYTES, Walked

    start = _LENGTH_BYTES + int.from_bytes(said[:_LENGTH_BYTES], "big")
    leads = {bytes.fromhex(each): _bridges(found) for each, found in json.loads(said[_LENGTH_BYTES:start]).items()}
    return Walked({said[at : at + DIGEST_BYTES] for at in range(start, len(said), DIGEST_BYTES)}, leads)


def _card_json(card: Card) -> list[Any]:
    own = None if card.own is None else [card.own.folders, card.own.holes]
    bridges = [_bridge_json(each) for each in card.bridges]
    return [card.metadata, card.uuid, card.folders.owned, card.folders.written, own, bridges, card.over_ms, card.links]


def _card(said: list[Any]) -> Card:
    metadata, uuid, owned, written, own, bridges, *more = said
    folders = Folders(tuple(owned), tuple(written))
    return Card(metadata, uuid, folders, own and OwnFolders(tuple(own[0]), tuple(own[1])), _bridges(bridges), *more)


def _bridge_json(bridge: Bridge) -> list[Any]:
    file = bridge.file
    return [file.kind.value, file.key, file.size, file.opens, file.expects, bridge.folders]


def _bridges(said: list[list[Any]]) -> Bridges:
    from firnline.ops.neighbours.outward import Bridge

    return tuple(Bridge(File(FileKind(kind), *file), tuple(folders)) for kind, *file, folders in said)
