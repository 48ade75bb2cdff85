"""Judged files as Spark holds them: packets of those of one table, verdict and kind, and beside each what it sums to.

So sums cross without the files, and of the files just those that are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.model.files import FileKind
from firnline.ports.engines import FILE_COLUMNS, Territory
from firnline.spark.packets import by_number, packed, unpacked
from firnline.spark.telling import raise_told
from firnline.spark.travelling import KINDS
from firnline.walking.verdicts import VERDICTS

JUDGED = pa.schema(
    [
        ("walk", pa.int32()),
        ("verdict", pa.int8()),
        ("kind", pa.int8()),
        ("count", pa.int64()),
        ("bytes", pa.int64()),
        ("unsized", pa.int64()),
        ("folders", pa.list_(pa.string())),
        ("error", pa.string()),
        ("data", pa.binary()),
    ]
)
JUDGED_DDL = (
    "walk int, verdict tinyint, kind tinyint, count bigint, bytes bigint, unsized bigint, folders array<string>, "
    "error string, data binary"
)

UNREADABLE, OTHERS = len(VERDICTS), len(VERDICTS) + 1
"""Verdicts beside those of files: a walk that cannot be judged, and what only other tables need."""

FOLDERS = pa.schema([("walk", pa.int32()), ("verdict", pa.int8()), ("folder", pa.string())])
FOLDERS_DDL = "walk int, verdict tinyint, folder string"
_FEW = 50
"""So many folders of a packet travel beside its sums; where there are more, a job of their own brings them."""

LOCAL = "file:///"
_HELD_BYTES = 16 << 20
FILES = pa.schema([(name, pa.int64() if name == "size" else pa.string()) for name in FILE_COLUMNS])
_NO_FILES = pa.schema([("identity", pa.string()), ("key", pa.string()), ("size", pa.int64())]).empty_table()


def may_be_local(territory: Territory) -> bool:
    """Tells whether files of this territory may lie on a disk, where a folder may have two names."""
    return territory.inside is None or any(stem.startswith(LOCAL) for stem in territory.inside)


class JudgedFiles:
    """Packs judged files; `local` tells of each walk whether its folders are to be looked at. It holds some megabytes
    until they are packed, whichever walks they are of.
    """

    def __init__(self, local: Sequence[bool]) -> None:
        self._local = local
        self._held: dict[tuple[int, int, int], list[pa.Table]] = {}
        self._bytes = 0

    def add(self, walk: int, files: pa.Table) -> Iterator[pa.RecordBatch]:
        """Takes files of a walk, and yields packets where enough is held."""
        columns = (files.column(name).to_numpy().astype(np.int64) for name in ("verdict", "kind"))
        verdict, kind = columns
        several = len(FileKind)
        found, portions = by_number(files.select(["identity", "key", "size"]), verdict * several + kind)
        for number, portion in zip(found.tolist(), portions, strict=True):
            self._held.setdefault((walk, number // several, number % several), []).append(portion)
            self._bytes += portion.nbytes
        if self._bytes > _HELD_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yields all that is held."""
        held, self._held, self._bytes = self._held, {}, 0
        rows = [self._row(*of, pa.concat_tables(files)) for of, files in held.items()]
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=JUDGED)

    def _row(self, walk: int, verdict: int, kind: int, files: pa.Table) -> dict[str, Any]:
        sizes = files.column("size")
        return {
            "walk": walk,
            "verdict": verdict,
            "kind": kind,
            "count": len(files),
            "bytes": pc.sum(sizes).as_py() or 0,
            "unsized": sizes.null_count,
            "folders": self._few_folders(walk, files),
            "data": packed(files),
        }

    def _few_folders(self, walk: int, files: pa.Table) -> list[str] | None:
        folders = _folders(files.column("identity")) if self._local[walk] else []
        return folders if len(folders) <= _FEW else None


def judged_lost(lost: Mapping[int, str]) -> pa.RecordBatch:
    """Returns what says that walks cannot be judged, and why."""
    rows = [{"walk": walk, "verdict": UNREADABLE, "kind": 0, "count": 0, "error": said} for walk, said in lost.items()]
    return pa.RecordBatch.from_pylist(rows, schema=JUDGED)


def _folders(names: pa.ChunkedArray) -> list[str]:
    """Returns the local folders that files lie in, each with the slash at its end."""
    local = names.filter(pc.starts_with(names, LOCAL))
    parts = pc.split_pattern(local, "/", max_splits=1, reverse=True)
    return [f"{folder}/" for folder in pc.unique(pc.list_element(parts, 0)).to_pylist()]


def all_folders(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the folders of packets of judged files, one in a row: for those that have too many to travel with sums."""
    for batch in batches:
        for walk, one in zip(batch.column("walk").to_pylist(), each_kind(batch), strict=True):
            folders = _folders(one.files.column("identity"))
            said = {"walk": [walk] * len(folders), "verdict": [one.verdict] * len(folders), "folder": folders}
            yield pa.record_batch([pa.array(said[each.name], each.type) for each in FOLDERS], schema=FOLDERS)


class OfOneKind(NamedTuple):
    """Files of one walk, verdict and kind; none, and why, where the walk cannot be judged."""

    verdict: int
    kind: str
    files: pa.Table
    error: str | None

    @staticmethod
    def of(packet: Mapping[str, Any]) -> OfOneKind:
        """Returns the files of a packet."""
        files = _NO_FILES if packet["data"] is None else unpacked(bytes(packet["data"]))
        return OfOneKind(packet["verdict"], KINDS[packet["kind"]].as_py(), files, packet["error"])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the files. Raises what an executor could not read."""
        raise_told(self.error)
        for batch in self.files.to_batches():
            names = batch.column("identity")
            keys = pc.coalesce(batch.column("key"), names)
            kinds = pa.repeat(pa.scalar(self.kind), len(batch))
            yield pa.record_batch([names, keys, batch.column("size"), kinds], schema=FILES)


def each_kind(batch: pa.RecordBatch) -> Iterator[OfOneKind]:
    """Yields the files of each packet."""
    names = ("verdict", "kind", "error", "data")
    for packet in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
        yield OfOneKind.of(dict(zip(names, packet, strict=True)))
