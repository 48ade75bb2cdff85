"""How many entries a table's manifests have, by as few requests as tell it: snapshots count records, not files."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from firnline.formats.avro import decode
from firnline.formats.opening import opened
from firnline.formats.paimon import fields, names
from firnline.formats.paimon.branches import branches_of
from firnline.formats.paimon.roots import lists_of
from firnline.formats.paimon.shrink import held_in
from firnline.formats.paimon.snapshot import PaimonSnapshot
from firnline.formats.paimon.state import files_in
from firnline.formats.paimon.versions import Version, versions_of
from firnline.ports.formats import State
from firnline.ports.stores import Get

_COUNTS = {"_NUM_ADDED_FILES": pa.int64(), "_NUM_DELETED_FILES": pa.int64()}


def entries_of(store: Get, state: State) -> int:
    """Returns how many entries the manifests of a snapshot have, of that with the most records or of the newest.

    Their lists say it: at most four requests, for what every walk opens first anyway.
    """
    return max((_entries(store, each, state.location) for each in _largest(state)), default=0)


def _largest(state: State) -> Iterator[PaimonSnapshot]:
    """Yields the newest snapshot of the main branch, and the version with the most records of all branches and tags,
    where that is another one.
    """
    branches = branches_of(files_in(state), state.location)
    versions = [version for branch in branches.values() for version in versions_of(branch).values()]
    if not versions:
        return
    main = branches[names.MAIN]
    most = max(versions, key=lambda each: (_records(state, each), each.snapshot.number)).snapshot
    found = {each.content: each for each in (most, *(main.snapshots[number] for number in (main.latest,) if number))}
    yield from found.values()


def _records(state: State, version: Version) -> int:
    path = held_in(version)
    return fields.whole_or_none(fields.parse(files_in(state)[path], path), "totalRecordCount", path) or 0


def _entries(store: Get, snapshot: PaimonSnapshot, location: str) -> int:
    total = 0
    for unit in lists_of(snapshot, location):
        with opened(store, unit) as data:
            found = decode(data, _COUNTS).batch
        total += sum(pc.sum(found.column(name)).as_py() or 0 for name in _COUNTS)
    return total
