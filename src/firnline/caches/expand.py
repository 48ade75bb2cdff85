"""An Expand that remembers: what a unit named once it names always, as long as its bytes are the same.

Thousands of them are read in a plan that opens nothing: their schema, nearly always the same, is parsed once, and
identities come back when all are one batch.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from firnline.caches.seal import Seal, entry_name, shelf_of
from firnline.errors import FirnlineError
from firnline.model.files import File
from firnline.model.locations import identity
from firnline.ports.cache import Cache
from firnline.ports.expanding import Expanded, Together, Wrapping, dependences, end_to_end
from firnline.ports.stores import List, ObjectMeta, shared
from firnline.version import VERSION

_LENGTHS = struct.Struct("<IQ")
"""Of the schema, and of the batch before it was compressed."""
_LARGEST_BATCH = 1 << 30
_CODEC = pa.Codec("lz4_raw")
_SAME = b"firnline.identity-is-key"


def to_bytes(batch: pa.RecordBatch) -> bytes:
    """Returns the batch as bytes that `from_bytes` turns back into an equal one."""
    sent = _without_identity(batch) if _is_canonical(batch) else batch
    schema, rows = sent.schema.serialize().to_pybytes(), sent.serialize()
    return b"".join([_LENGTHS.pack(len(schema), len(rows)), schema, _CODEC.compress(rows, asbytes=True)])


def from_bytes(data: bytes | memoryview) -> pa.RecordBatch | None:
    """Returns the batch, for `as_one`; None where this version of Arrow cannot read it, or lengths make no sense."""
    try:
        schema_bytes, size = _LENGTHS.unpack_from(data)
        start = _LENGTHS.size + schema_bytes
        if size > _LARGEST_BATCH:
            return None
        schema = _schema(bytes(data[_LENGTHS.size : start]))
        return pa.ipc.read_record_batch(_CODEC.decompress(data[start:], size), schema)
    except (pa.ArrowException, OSError, struct.error):
        return None


def as_one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Returns the rows of all, each as it was before `to_bytes`."""
    if all(map(_lacks_identity, batches)):
        return _with_identity(pa.concat_batches(batches))
    return end_to_end([_with_identity(each) if _lacks_identity(each) else each for each in batches])


@lru_cache(maxsize=16)
def _schema(data: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(data))


def _is_canonical(batch: pa.RecordBatch) -> bool:
    return bool(batch.schema.names[:2] == ["identity", "key"] and batch.column("identity").equals(batch.column("key")))


def _without_identity(batch: pa.RecordBatch) -> pa.RecordBatch:
    names = batch.schema.names[1:]
    return batch.select(names).replace_schema_metadata({_SAME: b"1"})


def _lacks_identity(batch: pa.RecordBatch) -> bool:
    return _SAME in (batch.schema.metadata or {})


def _with_identity(batch: pa.RecordBatch) -> pa.RecordBatch:
    schema = pa.schema([batch.schema.field("key").with_name("identity"), *batch.schema])
    return pa.record_batch([batch.column("key"), *batch.columns], schema=schema)


_MOST_FOLDERS = 8
_FEWEST_LISTED, _LISTED_PER_ROOT = 100_000, 20
_NAME_BYTES, _STAMP_BYTES = 8, 16


class Stamps:
    """A stamp for every object that was listed: 24 bytes each, so that millions travel to executors."""

    def __init__(self, listed: Iterable[ObjectMeta] = ()) -> None:
        rows = [(_name(each.key), _stamp(each)) for each in listed if each.etag is not None]
        names = np.frombuffer(b"".join(name for name, _ in rows), dtype=">u8")
        stamps = np.frombuffer(b"".join(stamp for _, stamp in rows), dtype=f"V{_STAMP_BYTES}")
        order = np.argsort(names, kind="stable")
        self._names: np.ndarray[Any, Any] = names[order]
        self._stamps: np.ndarray[Any, Any] = stamps[order]

    def __len__(self) -> int:
        return len(self._names)

    def of(self, keys: Sequence[str]) -> list[bytes | None]:
        """Returns what identifies each object's bytes; None where it was not listed, so that nobody relies on it.

        Two objects of one name (the names are shortened) would vouch for each other: then neither has a stamp.
        """
        names = np.frombuffer(b"".join(map(_name, keys)), dtype=">u8")
        firsts, ends = (np.searchsorted(self._names, names, side).tolist() for side in ("left", "right"))
        return [
            self._stamps[first].tobytes() if end - first == 1 else None for first, end in zip(firsts, ends, strict=True)
        ]


def look_up(store: List, units: Iterable[File], also: Iterable[str] = ()) -> Stamps:
    """Returns stamps for what lies beside these units: most writers put manifests where their lists are. `also` are
    folders of units that lie elsewhere.

    A listing that fails, or that is far longer than the table has units, gives fewer stamps; units without one are
    read as if there were no cache.
    """
    folders = Counter(unit.key.rpartition("/")[0] for unit in units if unit.opens)
    most = max(_FEWEST_LISTED, _LISTED_PER_ROOT * folders.total())
    wanted = dict.fromkeys([*also, *(folder for folder, _ in folders.most_common(_MOST_FOLDERS))])
    return Stamps(islice(_listed(store, wanted), most))


def _listed(store: List, folders: Iterable[str]) -> Iterator[ObjectMeta]:
    for folder in folders:
        try:
            yield from store.list(folder)
        except FirnlineError:
            continue


def _name(key: str) -> bytes:
    return blake2b(identity(key).encode("utf-8", "surrogatepass"), digest_size=_NAME_BYTES).digest()


def _stamp(meta: ObjectMeta) -> bytes:
    said = f"{meta.etag}\n{meta.size}\n{meta.modified_ms}"
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=_STAMP_BYTES).digest()


_LAYOUT = 4
"""Counts up whenever an entry of before would be read wrongly, or an expansion of before would be wrong now."""


@dataclass(frozen=True, slots=True)
class CachedExpand(Wrapping):
    """Opens units and remembers what they name; and recalls it, where the cache has a sealed answer for exactly these
    bytes.

    Only for planning: code that is about to delete, or asks whether files are there, reads afresh.
    """

    format: str
    cache: Cache
    seal: Seal
    stamps: Stamps
    ttl_s: int

    def share(self, parts: int) -> CachedExpand:
        return replace(self, expand=shared(self.expand, parts))

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        opened = self.expand(units, together)
        self._remember(units, opened)
        return opened

    def recalled(self, units: Sequence[File], together: Together = map) -> tuple[list[int], Expanded] | None:
        names = self.names(units)
        known: dict[int, pa.RecordBatch] = {}
        for shelf, numbers in _shelves(units, names).items():
            asked = [names[number] or "" for number in numbers]
            for number, name, sealed in zip(numbers, asked, self.cache.get(shelf, asked), strict=True):
                rows = None if sealed is None else self._unsealed(name, sealed)
                if rows is not None:
                    known[number] = rows
        if not known:
            return None
        numbers = sorted(known)
        of = np.repeat(np.array(numbers, dtype=np.int64), [len(known[number]) for number in numbers])
        return numbers, Expanded(as_one([known[number] for number in numbers]), of)

    def _remember(self, units: Sequence[File], opened: Expanded) -> None:
        """Remembers what each unit names. One that does not even name itself was not there when it was to be opened,
        though it was listed: it may be there again, and whatever it names then must not look like garbage.
        """
        names = self.names(units)
        rows = _without_identity(opened.rows) if _is_canonical(opened.rows) else opened.rows  # once for all units
        each = list(replace(opened, rows=rows).by_unit(len(names)))
        for shelf, numbers in _shelves(units, names).items():
            sealed = [self._entry(names[number] or "", each[number]) for number in numbers if len(each[number])]
            self.cache.put(shelf, sealed, self.ttl_s)

    def _entry(self, name: str, rows: pa.RecordBatch) -> tuple[str, bytes]:
        return name, self.seal.close(name, to_bytes(rows))

    def names(self, units: Sequence[File]) -> list[str | None]:
        """Returns the names of the units' entries; None where nothing identifies one's bytes: it is always opened.

        Everything that the answer depends on is in it: the spelling, the length and the number of files that the
        table expects, the store's tag, what the format says beside that, and which version of firnline decodes.
        """
        stamps = self.stamps.of([unit.key for unit in units])
        return list(map(self._name, units, stamps, dependences(self.expand, units)))

    def _name(self, unit: File, stamp: bytes | None, beside: str | None) -> str | None:
        if stamp is None or beside is None:
            return None
        unit_is = (unit.kind.value, unit.key, unit.size, unit.expects)
        return entry_name((_LAYOUT, VERSION, self.format, *unit_is, stamp, beside))

    def _unsealed(self, name: str, sealed: bytes) -> pa.RecordBatch | None:
        payload = self.seal.open(name, sealed)
        return None if payload is None else from_bytes(payload)


def _shelves(units: Sequence[File], names: Sequence[str | None]) -> dict[str, list[int]]:
    """Returns the numbers of the units that have a name, by their shelf: that of the folder that they lie in."""
    folders: dict[str, list[int]] = {}
    for number, (unit, name) in enumerate(zip(units, names, strict=True)):
        if name is not None:
            folders.setdefault(unit.key.rpartition("/")[0], []).append(number)
    return {shelf_of(folder): numbers for folder, numbers in folders.items()}
