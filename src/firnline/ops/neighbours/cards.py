"""What the index keeps of a table, and how it is written down."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from firnline.model.files import File, FileKind
from firnline.ops.neighbours.folders import Folders, Own
from firnline.ops.neighbours.outward import DIGEST_BYTES, Bridge, Bridges, Walked
from firnline.ports.catalogs import TableName

_LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Card:
    """One table by the metadata that it was read from. `bridges` are those out of `own`, which is None before the table
    was walked, and if it names files by links: those change.
    """

    metadata: str
    uuid: str
    folders: Folders
    own: Own | None = None
    bridges: Bridges = ()


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
    start = _LENGTH_BYTES + int.from_bytes(said[:_LENGTH_BYTES], "big")
    leads = {bytes.fromhex(each): _bridges(found) for each, found in json.loads(said[_LENGTH_BYTES:start]).items()}
    return Walked({said[at : at + DIGEST_BYTES] for at in range(start, len(said), DIGEST_BYTES)}, leads)


def _card_json(card: Card) -> list[Any]:
    own = None if card.own is None else [card.own.folders, card.own.holes]
    bridges = [_bridge_json(each) for each in card.bridges]
    return [card.metadata, card.uuid, card.folders.owned, card.folders.written, own, bridges]


def _card(said: list[Any]) -> Card:
    metadata, uuid, owned, written, own, bridges = said
    folders = Folders(tuple(owned), tuple(written))
    return Card(metadata, uuid, folders, own and Own(tuple(own[0]), tuple(own[1])), _bridges(bridges))


def _bridge_json(bridge: Bridge) -> list[Any]:
    file = bridge.file
    return [file.kind.value, file.key, file.size, file.opens, bridge.folders]


def _bridges(said: list[list[Any]]) -> Bridges:
    return tuple(
        Bridge(File(FileKind(kind), key, size, opens), tuple(folders)) for kind, key, size, opens, folders in said
    )
