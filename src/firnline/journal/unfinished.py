"""The list of unfinished runs: one small object for each run, under the records root that the operator configured.

    RECORDS/_firnline/unfinished/run-5f0c….json

With it nobody has to look at every table of a lake to find the few that have something to be done. It says where to
look, and nothing else: what a run is, and whether there is one, is told by its record. An entry is written before the
record is, and taken away after the run has ended; so a run has an entry as long as it is unfinished, and an entry
without a run is what a process left behind that died in between.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from firnline.errors import UnreadableMetadata
from firnline.journal.events import Shape, misfit
from firnline.journal.layout import FOLDER
from firnline.journal.parts import PutAndGet, put_own
from firnline.model.locations import identity, join
from firnline.ports.catalogs import TableName
from firnline.ports.discard import OwnKey
from firnline.ports.stores import Get, List, ObjectMeta

_SHAPE: Shape = {
    "table": {"catalog": str, "namespace": [str], "name": str},
    "address": str,
    "uuid": str,
    "metadata": str,
    "run": str,
}


class Lists(Get, List, Protocol):
    """What a list is read with."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run of the list. `address` is that of the table's catalog; the uuid, and the folder of its metadata, find a
    table that was renamed since.
    """

    table: TableName
    address: str
    uuid: str
    metadata: str
    stamp: str

    def to_json(self) -> dict[str, Any]:
        name = {"catalog": self.table.catalog, "namespace": list(self.table.namespace), "name": self.table.name}
        told = {"table": name, "address": self.address, "uuid": self.uuid}
        return {**told, "metadata": self.metadata, "run": self.stamp}


def unfinished_folder(records: str) -> str:
    """Returns the folder of the list of unfinished runs that belongs to the records root `records`."""
    return join(records, FOLDER, "unfinished")


def entry_key(records: str, uuid: str, stamp: str) -> OwnKey:
    """Returns the name of a run's entry. Stamps tell seconds, and tables of a lake are planned side by side."""
    digest = hashlib.sha256(json.dumps([uuid, stamp]).encode()).hexdigest()
    return OwnKey(unfinished_folder(records), f"run-{digest[:32]}.json")


def put_entry(store: PutAndGet, records: str, entry: RunEntry) -> None:
    """Enters a run in the list. Raises StoreError if that cannot be written."""
    put_own(store, str(entry_key(records, entry.uuid, entry.stamp)), json.dumps(entry.to_json()).encode())


def listed_objects(store: List, records: str) -> Iterator[ObjectMeta]:
    """Yields every object in the folder of the list, whatever it is."""
    return store.list(unfinished_folder(records) + "/")


def read_entry(store: Get, records: str, key: str) -> RunEntry:
    """Returns an entry. Raises UnreadableMetadata for anything else, ObjectNotFound if it is gone."""
    try:
        said = json.loads(store.get(key))
        wrong = misfit(said, _SHAPE)
        json.dumps(said, ensure_ascii=False).encode()  # half of a character is no name, and no catalog takes it
    except (ValueError, RecursionError) as damage:
        raise _no_entry(key, str(damage)) from damage
    if wrong is not None:
        raise _no_entry(key, f"it has no {wrong or 'fields'}, or a strange one")
    table = said["table"]
    name = TableName(table["catalog"], tuple(table["namespace"]), table["name"])
    entry = RunEntry(name, said["address"], said["uuid"], said["metadata"], said["run"])
    if identity(key) != identity(str(entry_key(records, entry.uuid, entry.stamp))):
        raise _no_entry(key, "it has another name than the entry of its run")
    return entry


def _no_entry(key: str, why: str) -> UnreadableMetadata:
    return UnreadableMetadata(
        f"{key} is no entry of the list of unfinished runs: {why}",
        hint="it may hide a run: `--all` looks at every table; then the object can be removed by hand",
    )
