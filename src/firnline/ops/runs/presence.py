"""Whether files exist, with their size: what `check` reports, what `undo` must know first, and whether an undo will
work, which is asked before the commit that promises it.

A path that is derived from values is right or wrong for a whole folder: one file that is there speaks for its folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import chain, islice
from typing import TYPE_CHECKING

from firnline.model.locations import within
from firnline.ops.runs.plan import Planned
from firnline.ports.abilities import UnprovedNames
from firnline.ports.engines import Engine, Listing, ListingTooLarge, Survey
from firnline.ports.formats import State, TableFormat, UndoWindow
from firnline.ports.listings import ListRanges
from firnline.ports.stores import Read, is_there

if TYPE_CHECKING:
    import pyarrow as pa


_THREADS = 16
LISTED = 100
MOST_LOOKS, MOST_KEYS = 200, 20_000
MISSING = "missing"
FEW_LOOKS = 1_000
"""So many files are asked for one by one: a listing of a folder that holds much else would cost more."""
_PIECES = 64


@dataclass(frozen=True, slots=True)
class FileFault:
    """A file that is not as its table says. A hint says what to do, where that is not to bring it back."""

    path: str
    kind: str
    problem: str
    hint: str = ""

    def to_json(self) -> dict[str, str]:
        said = {"path": self.path, "kind": self.kind, "problem": self.problem}
        return {**said, "hint": self.hint} if self.hint else said


@dataclass(frozen=True, slots=True)
class Presence:
    """How many files were looked at, how many are not as they should be, and the first of those by name."""

    looked_at: int
    bytes: int
    faults: int
    listed: tuple[FileFault, ...]

    def and_also(self, found: Sequence[FileFault]) -> Presence:
        """Returns this with further faults, which are listed first."""
        return replace(self, faults=self.faults + len(found), listed=(*found, *self.listed)[:LISTED])


def look(
    engine: Engine, survey: Survey, store: Read, by_name: Sequence[str] = (), listing: Listing | None = None
) -> Presence:
    """Returns which needed files of a survey are missing or have another size, as the engine finds them.

    Here are the faults that come at a time, and the first by name: memory grows neither with the files nor with what
    is wrong.
    `by_name` are folders of a format that gives no name twice: a file that lies anywhere in them is there, though not
    where its path was derived to be. What is in the listing as it should be is not asked for.
    """
    every, faulty = survey.kept.all, 0
    listed: list[FileFault] = []
    for batch in engine.faults(survey, store, listing):
        found = _not_found_by_name(store, list(_told(batch)), by_name)
        faulty += len(found)
        listed = nsmallest(LISTED, [*listed, *found], key=lambda each: each.path)
    return Presence(every.files, every.bytes, faulty, tuple(listed))


def listed_beside(
    table_format: TableFormat, state: State, ranges: ListRanges | None, engine: Engine, survey: Survey
) -> Listing | None:
    """Returns a listing of a table's own folders, where it costs less than to ask for each needed file; None where
    there are few of them, or more is listed than this engine should hold. What it lacks is asked for one by one.

    Only of formats whose purges look for every needed file: others may not be permitted to list, or need not.
    """
    if ranges is None or not isinstance(table_format, UnprovedNames) or survey.kept.all.files <= FEW_LOOKS:
        return None
    pieces = chain.from_iterable(ranges.split(folder, _PIECES) for folder in _outer(state.owned))
    try:
        return engine.list(list(pieces), ranges)
    except ListingTooLarge:
        return None


def _outer(folders: Sequence[str]) -> list[str]:
    """Returns those folders that lie in no other."""
    return [each for each in folders if not any(within(other, each) for other in folders if other != each)]


def _told(batch: pa.RecordBatch) -> Iterator[FileFault]:
    for row in batch.to_pylist():
        problem = MISSING if row["found"] is None else f"has {row['found']} bytes, not {row['size']}"
        yield FileFault(row["key"], row["kind"], problem)


def _not_found_by_name(store: Read, faults: list[FileFault], folders: Sequence[str]) -> list[FileFault]:
    found = found_by_name(store, {name_of(each.path) for each in faults if each.problem == MISSING}, folders)
    return [each for each in faults if each.problem != MISSING or name_of(each.path) not in found]


def found_by_name(store: Read, names: Set[str], folders: Sequence[str]) -> set[str]:
    """Returns those of the names that lie anywhere in the folders. Nothing is listed where none is asked for."""
    if not names:
        return set()
    return {name for folder in folders for each in store.list(folder) if (name := name_of(each.key)) in names}


def name_of(key: str) -> str:
    return key.rpartition("/")[2]


def without_false_promise(planned: Planned, table_format: TableFormat, store: Read) -> Planned:
    """Returns the plan, with a note if an undo of it would be refused, since files of what goes are not there.

    Asked only where paths are derived. What is gone already is no reason to keep the rest: it is told, not refused.
    """
    promised = planned.plan.undo is UndoWindow.AFTER_COMMIT and planned.plan.stages
    if planned.survey is None or not promised or not table_format.unique_names:
        return planned
    absent = sorted(_absent(store, planned.survey.victim_batches()))
    found = found_by_name(store, {name_of(key) for key in absent}, planned.state.owned)
    gone = [key for key in absent if name_of(key) not in found]
    if not gone:
        return planned
    note = f"undo will be refused: files of what goes are not there, such as {gone[0]}"
    return replace(planned, plan=replace(planned.plan, notes=(*planned.plan.notes, note)))


def _absent(store: Read, batches: Iterable[pa.RecordBatch]) -> list[str]:
    """Returns which of some victims, one of each folder, are not where they were derived to be.

    A plan pays for no more than MOST_LOOKS, whatever the table's size: an undo looks at every file itself.
    """
    keys = (key for batch in batches for key in batch.column("key").to_pylist())
    chosen = list(islice(_one_of_each_folder(islice(keys, MOST_KEYS)), MOST_LOOKS))
    with ThreadPoolExecutor(_THREADS) as pool:
        there = pool.map(lambda key: is_there(store, key), chosen)
        return [key for key, is_there in zip(chosen, there, strict=True) if not is_there]


def _one_of_each_folder(keys: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for key in keys:
        folder = key.rpartition("/")[0]
        if folder not in seen:
            seen.add(folder)
            yield key
