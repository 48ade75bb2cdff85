"""`version-hint.text`, for readers that know only that: DuckDB, PyIceberg's StaticTable, Hadoop's tables.

It lies beside the metadata and has the current file's name, with its end or without. A folder has one, whatever number
of tables is in it: another table's is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firnline.errors import ObjectNotFound, RefusedForSafety
from firnline.model.locations import identity, join
from firnline.ports.stores import Read, ReadWrite, TaggedObject

if TYPE_CHECKING:
    from firnline.pointers.publishing import Ask, CatalogTruth, Published

HINT = "version-hint.text"
_END = ".metadata.json"
_LONGEST = 1_024

IsOurs = Callable[[str, str], bool]
"""Tells whether a metadata file, by its location, is gone or is a version of the table with this uuid, and of no other
registration of it.
"""


@dataclass(frozen=True, slots=True)
class HintPublisher:
    """Keeps a table's hint at what the catalog says, by the rule of pointers: read, ask, replace as it was read."""

    store: ReadWrite
    is_ours: IsOurs

    def publish(self, ask: Ask) -> tuple[str, Published]:
        """Returns the file and what became of it. Raises RefusedForSafety where it leads to another table."""
        from firnline.pointers.publishing import in_order

        return in_order(ask, _key, _key, self._seen, self._written)

    def _written(self, key: str, seen: TaggedObject | None, truth: CatalogTruth) -> tuple[str, Published]:
        from firnline.pointers.publishing import Published

        text = _text(truth).encode()
        if seen is None:
            self.store.put_if_absent(key, text)
            return key, Published.NEW
        if seen.data == text:
            return key, Published.UNCHANGED
        self._refuse_strange(key, seen.data, truth)
        self.store.put_if_match(key, text, seen)
        return key, Published.MOVED_ON

    def _seen(self, key: str) -> TaggedObject | None:
        try:
            return self.store.get_tagged(key)
        except ObjectNotFound:
            return None

    def _refuse_strange(self, key: str, data: bytes, truth: CatalogTruth) -> None:
        place = hinted(key, data)
        if not self.is_ours(place, truth.guid):
            raise RefusedForSafety(
                f"{key} leads to {place}, which is another table's",
                hint="turn `version-hint` off for this table, or remove the file if no reader goes by it any more",
            )


def hinted(key: str, data: bytes) -> str:
    """Returns the metadata file that a hint names: by its name, with the end or without, or by a number."""
    named = _named(data[:_LONGEST])
    stem = f"v{named}" if named.isdecimal() else named.removesuffix(_END)
    return join(key.rpartition("/")[0], stem + _END)


@dataclass(frozen=True, slots=True)
class FoundHint:
    """A hint, and the metadata file that it names. By a number path tables' own readers only begin, and go on to the
    newest; PyIceberg and DuckDB read that very file.
    """

    key: str
    place: str
    is_number: bool


def read_hint(store: Read, key: str) -> FoundHint | None:
    """Returns the hint in a file; None where there is none, or it names no file."""
    try:
        data = store.get(key) if store.head(key).size <= _LONGEST else b""
    except ObjectNotFound:
        return None
    named = _named(data)
    return FoundHint(key, hinted(key, data), named.isdecimal()) if named and "/" not in named else None


def _named(data: bytes) -> str:
    return data.decode("utf-8", errors="replace").strip()


def hint_key(metadata: str) -> str:
    return join(metadata.rpartition("/")[0], HINT)


def hint_keys(location: str, metadata: str) -> list[str]:
    """Returns the keys that a table's hint may have: beside its metadata, and where readers look that know its folder
    alone. If `write.metadata.path` was set later, the hint of before still lies there.
    """
    found = (hint_key(metadata), join(location, "metadata", HINT))
    return list({identity(each): each for each in reversed(found)}.values())


def _key(truth: CatalogTruth) -> str:
    return hint_key(truth.metadata)


def _text(truth: CatalogTruth) -> str:
    """Returns what the hint says. Raises RefusedForSafety for a name that readers of hints do not find: they put a `v`
    before a number.
    """
    name = truth.metadata.rpartition("/")[2]
    stem = name.removesuffix(_END)
    if stem == name or stem.isdecimal():
        raise RefusedForSafety(f"no hint can lead to {name}", hint="turn `version-hint` off for this table")
    return stem
