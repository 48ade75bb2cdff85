"""Looking whether files exist, with their size: what `check` reports and what `undo` must know first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firnline.errors import ObjectNotFound
from firnline.ports.progress import Progress
from firnline.ports.stores import Head, Read

if TYPE_CHECKING:
    import pyarrow as pa

_THREADS = 16
LISTED = 100
MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Fault:
    """A file that is not as its table says."""

    path: str
    kind: str
    problem: str


@dataclass(frozen=True, slots=True)
class Presence:
    """How many files were looked at, how many are not as they should be, and the first of those by name."""

    looked_at: int
    bytes: int
    faults: int
    listed: tuple[Fault, ...]

    def and_also(self, found: Sequence[Fault]) -> Presence:
        """Returns this with further faults, which are listed first."""
        return replace(self, faults=self.faults + len(found), listed=(*found, *self.listed)[:LISTED])


def look(store: Read, batches: Iterable[pa.RecordBatch], progress: Progress, by_name: Sequence[str] = ()) -> Presence:
    """Returns which files are missing or have another size. Memory does not grow with the files.

    `by_name` are folders of a format that gives no name twice: a file that lies anywhere in them is there, though not
    where its path was derived to be.
    """
    count = size = faulty = 0
    listed: list[Fault] = []
    for batch in batches:
        for fault in _not_found_by_name(store, list(_faults(store, batch)), by_name):
            faulty += 1
            if len(listed) < LISTED:
                listed.append(fault)
        count += len(batch)
        size += sum(each or 0 for each in batch.column("size").to_pylist())
        progress.step("looking at files", count)
    return Presence(count, size, faulty, tuple(listed))


def _not_found_by_name(store: Read, faults: list[Fault], folders: Sequence[str]) -> list[Fault]:
    found = found_by_name(store, {name_of(each.path) for each in faults if each.problem == MISSING}, folders)
    return [each for each in faults if each.problem != MISSING or name_of(each.path) not in found]


def found_by_name(store: Read, names: Set[str], folders: Sequence[str]) -> set[str]:
    """Returns those of the names that lie anywhere in the folders. Nothing is listed where none is asked for."""
    if not names:
        return set()
    return {name for folder in folders for each in store.list(folder) if (name := name_of(each.key)) in names}


def name_of(key: str) -> str:
    return key.rpartition("/")[2]


def _faults(store: Head, batch: pa.RecordBatch) -> Iterator[Fault]:
    rows = list(zip(*(batch.column(name).to_pylist() for name in ("key", "kind", "size")), strict=True))
    with ThreadPoolExecutor(_THREADS) as pool:
        for (key, kind, _), problem in zip(
            rows, pool.map(lambda row: _problem(store, row[0], row[2]), rows), strict=True
        ):
            if problem:
                yield Fault(key, kind, problem)


def _problem(store: Head, key: str, size: int | None) -> str | None:
    try:
        found = store.head(key).size
    except ObjectNotFound:
        return MISSING
    return None if size is None or found == size else f"has {found} bytes, not {size}"
