"""Dropped tables: folders with a table's metadata that no configured catalog knows, each with its evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from firnline.errors import FirnlineError, RefusedForSafety
from firnline.model.files import Tally
from firnline.model.locations import identity
from firnline.model.times import format_instant
from firnline.ops.orphans.rules import Rules, SearchRequest
from firnline.ops.orphans.search import Means, needed_by
from firnline.ops.orphans.tables_now import TablesNow
from firnline.ports.engines import Census
from firnline.ports.formats import State
from firnline.ports.stores import List

_THREADS = 16


@dataclass(frozen=True, slots=True)
class Dropped:
    """What is left of one table. `newest_ms` is the store's time of the youngest object in its folder.

    `problem` says why its last metadata cannot be read; then it has no uuid, and nothing of it can be purged.
    """

    folder: str
    metadata: str
    uuid: str | None
    table: Tally
    newest_ms: int | None
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "folder": self.folder,
            "metadata": self.metadata,
            "uuid": self.uuid,
            "files": self.table.files,
            "bytes": self.table.bytes,
            "newest": None if self.newest_ms is None else format_instant(self.newest_ms),
            "problem": self.problem,
        }


def dropped_tables(prefix: str, means: Means, store: List) -> list[Dropped]:
    """Returns the folders under a prefix that look like tables and are none of any catalog. Changes nothing."""
    listing = means.engine.list(means.ranges.split(prefix, 64), means.ranges)
    lake = TablesNow.read(means.everyone, SearchRequest(), means.now())
    sort = means.make_sort(Rules(lake.cutoff_ms, (), (), (), ()))
    census = means.engine.census(listing, lake.by_server(needed_by(lake, ()), means.here), sort)
    known = lake.by_uuid
    with ThreadPoolExecutor(_THREADS) as pool:
        last = sorted(_last_metadata(census, means.formats.folder_of).items())
        found = pool.map(lambda each: _evidence(each[0], each[1], means, store), last)
        return [each for each in found if each.uuid not in known]


def refuse_moved(departed: State, folder: str) -> None:
    """Raises where a table's last metadata lies in one folder and says that its files are in another."""
    if identity(departed.location).rstrip("/") != identity(folder).rstrip("/"):
        raise RefusedForSafety(
            f"the table whose metadata is in {folder} lived at {departed.location}",
            hint="only what lies in the named folder may go; remove a copy or a moved table by hand",
        )


def _last_metadata(census: Census, folder_of: Callable[[str], str]) -> dict[str, str]:
    """Returns the youngest metadata object of each table's folder that has some."""
    newest: dict[str, tuple[int, str]] = {}
    for batch in census.document_batches():
        for row in batch.select(["key", "modified_ms"]).to_pylist():
            folder = folder_of(row["key"])
            newest[folder] = max(newest.get(folder, (-1, "")), (row["modified_ms"] or 0, row["key"]))
    return {folder: key for folder, (_, key) in newest.items()}


def _evidence(folder: str, metadata: str, means: Means, store: List) -> Dropped:
    problem, uuid = None, None
    try:
        table = means.formats.dropped_table(metadata)
        problem, uuid = ("its metadata is gone", None) if table is None else (None, table.uuid)
    except FirnlineError as damage:
        problem = damage.message
    objects = list(_sizes(store, folder))
    newest = max((modified for _, modified in objects if modified is not None), default=None)
    tally = Tally(len(objects), sum(size for size, _ in objects))
    return Dropped(folder, metadata, uuid, tally, newest, problem)


def _sizes(store: List, folder: str) -> Iterator[tuple[int, int | None]]:
    return ((each.size, each.modified_ms) for each in store.list(folder))
