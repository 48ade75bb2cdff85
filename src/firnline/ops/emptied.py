"""Removing folders that a purge emptied, where the table asks for it."""

from __future__ import annotations

from collections.abc import Iterator

from firnline.journal.lease import Lease
from firnline.journal.parts import part_keys, read_part
from firnline.journal.runs import Run
from firnline.ops.workplace import Workplace
from firnline.ports.delete import RemoveEmpty


def remove_emptied(work: Workplace, lease: Lease, run: Run, folders: RemoveEmpty) -> None:
    """Removes each folder that the run took the last file from, and those around it, if nothing at all is in them.

    A writer that made a folder and has not yet put its file there loses the folder, not a file: it fails and makes the
    folder again. That is why the table must ask for it.
    """
    state = work.source.load()
    bounds = work.bounds(state, run)
    emptied = work.source.format.emptied(state, _folders(work, run))
    for folder in (each for each in emptied if bounds.forbids(each) is None):
        lease.renew()
        lease.check()
        folders.remove_empty(folder)


def _folders(work: Workplace, run: Run) -> Iterator[str]:
    """Yields the folder of each file on the written list, once for each part of it."""
    for key in part_keys(work.store, run.folder.victims):
        part = read_part(work.store, key, run.victim_seals[key.rpartition("/")[2]])
        yield from {name.rpartition("/")[0] for name in part.column("key").to_pylist()}
