"""What one process is put together from, with every port behind a fault: its stores, its deletes, where it works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from firnline.app.catalogs import Catalogs
from firnline.app.engines import Engines
from firnline.app.places import Places, TablePlace
from firnline.app.stores import Stores
from firnline.journal.lease import LeaseTimes
from firnline.local.delete import LocalDeleteMany
from firnline.ops.table.context import TableContext
from firnline.policy.parse import Section
from firnline.ports.catalogs import TableName
from firnline.ports.delete import Delete, DeleteMany, RemoveEmpty
from firnline.ports.discard import Discard
from firnline.ports.retire import Retire
from firnline.stores.delete import ObjectDelete
from firnline.stores.objects import ObjectStores
from firnline.stores.removers import ObjectRetire
from firnline.testing.faults import Fault
from firnline.testing.faulty import FaultyDelete, FaultyDiscard, FaultyFolders, FaultyRetire

if TYPE_CHECKING:
    from firnline.ports.stores import ReadWrite


class WorldStores(Stores):
    """One store for all that a process does, and everything that removes objects from it, behind a fault."""

    def __init__(
        self, config: Section, catalogs: Catalogs, fault: Fault, store: ReadWrite, settings: Mapping[str, str]
    ) -> None:
        super().__init__(config, catalogs)
        self.fault = fault
        self.store = store
        self.settings = settings

    def settings_of(self, name: TableName) -> Mapping[str, str]:
        return self.settings

    def open(self, settings: Mapping[str, str]) -> ReadWrite:
        return self.store

    def prompt(self, settings: Mapping[str, str]) -> ReadWrite:
        return self.store

    def retire(self, name: TableName, store: ReadWrite) -> Retire:
        return FaultyRetire(ObjectRetire(ObjectStores(self.settings), self.settings), self.fault)

    def discard(self, settings: Mapping[str, str]) -> Discard:
        return FaultyDiscard(super().discard(self.settings), self.fault)

    def remove_empty(self) -> RemoveEmpty:
        return FaultyFolders(super().remove_empty(), self.fault)

    def delete(self, name: TableName, root: str) -> Delete:
        return FaultyDelete(ObjectDelete(self.settings), self.fault)


class OneByOne(Engines):
    """Deletes one key after another: so that the n-th delete is always the same."""

    def delete_many(self, name: TableName, location: str, files: int) -> DeleteMany:
        return LocalDeleteMany(at_once=1)


class ProcessPlaces(Places):
    """Where one process works: under a name and with leases of its own."""

    owner = ""
    lease_times = LeaseTimes(24_000, 6_000, skew_ms=0)

    def context_at(self, place: TablePlace) -> TableContext:
        return replace(super().context_at(place), owner=self.owner, lease_times=self.lease_times)
