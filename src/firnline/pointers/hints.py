"""`version-hint.text`, for readers that know only that: DuckDB, PyIceberg's StaticTable, Hadoop's tables.

It lies beside the metadata and has the current file's name without its end. A folder has one, whatever number of tables
is in it: another table's is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from firnline.errors import ObjectNotFound, RefusedForSafety
from firnline.model.locations import join
from firnline.pointers.publishing import Ask, CatalogTruth, Published, in_order
from firnline.ports.stores import Read, ReadWrite, TaggedObject

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
        return in_order(ask, _key, _key, self._seen, self._written)

    def _written(self, key: str, seen: TaggedObject | None, truth: CatalogTruth) -> tuple[str, Published]:
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
                f"{key} leads to {place}, which is another table's", hint="turn `version-hint` off for this table"
            )


def hinted(key: str, data: bytes) -> str:
    """Returns the metadata file that a hint names: by its name without the end, or by a number."""
    named = data[:_LONGEST].decode("utf-8", errors="replace").strip()
    return join(key.rpartition("/")[0], (f"v{named}" if named.isdecimal() else named) + _END)


def read_hint(store: Read, metadata: str) -> tuple[str, str] | None:
    """Returns the hint beside a metadata file and what it names; None where it names no file. A number is a path
    table's: its readers begin there and go on to the newest.
    """
    key = hint_key(metadata)
    try:
        data = store.get(key) if store.head(key).size <= _LONGEST else b""
    except ObjectNotFound:
        return None
    named = data.decode("utf-8", errors="replace").strip()
    is_name = bool(named) and "/" not in named and not named.isdecimal()
    return (key, hinted(key, data)) if is_name else None


def hint_key(metadata: str) -> str:
    return join(metadata.rpartition("/")[0], HINT)


def _key(truth: CatalogTruth) -> str:
    return hint_key(truth.metadata)


def _text(truth: CatalogTruth) -> str:
    """Returns what the hint says. Raises RefusedForSafety for a name that readers of hints do not find."""
    name = truth.metadata.rpartition("/")[2]
    if not name.endswith(_END):
        raise RefusedForSafety(f"no hint can lead to {name}", hint="turn `version-hint` off for this table")
    return name.removesuffix(_END)
