"""Whether an undo will work, asked before the commit: what was promised must not be refused afterwards.

A path that is derived from values is right or wrong for a whole folder: one file that is there speaks for its folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from firnline.errors import ObjectNotFound
from firnline.ops.plan import Planned
from firnline.ops.presence import found_by_name, name_of
from firnline.ports.formats import TableFormat, UndoWindow
from firnline.ports.stores import Read

if TYPE_CHECKING:
    import pyarrow as pa

_THREADS = 16


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
    note = f"undo will be refused: {len(gone)} files of what goes are not there, such as {gone[0]}"
    return replace(planned, plan=replace(planned.plan, notes=(*planned.plan.notes, note)))


def _absent(store: Read, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Yields the files that are not where they were derived to be, of folders of which none was there before them."""
    proven: set[str] = set()
    with ThreadPoolExecutor(_THREADS) as pool:
        for batch in batches:
            left = _by_folder(batch.column("key").to_pylist(), proven)
            while left:
                asked = {folder: keys.pop() for folder, keys in left.items()}
                there = dict(zip(asked, pool.map(lambda key: _is_there(store, key), asked.values()), strict=True))
                yield from (asked[folder] for folder, is_there in there.items() if not is_there)
                proven |= {folder for folder, is_there in there.items() if is_there}
                left = {folder: keys for folder, keys in left.items() if keys and folder not in proven}


def _by_folder(keys: Iterable[str], proven: set[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in keys:
        folder = key.rpartition("/")[0]
        if folder not in proven:
            found.setdefault(folder, []).append(key)
    return found


def _is_there(store: Read, key: str) -> bool:
    try:
        store.head(key)
    except ObjectNotFound:
        return False
    return True
