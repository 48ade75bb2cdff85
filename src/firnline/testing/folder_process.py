"""One firnline process on a table in a folder: the real composition root, with every port behind a fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from firnline.app import Lake, TablePlace
from firnline.journal.lease import LeaseTimes
from firnline.journal.runs import Run
from firnline.local.delete import LocalDeleteMany
from firnline.ops.runs.purge import Deleter
from firnline.ops.table.context import TableContext
from firnline.policy.parse import Section, parse_policy
from firnline.ports.catalogs import TableName
from firnline.ports.retire import Retire
from firnline.stores.delete import ObjectDelete
from firnline.stores.objects import ObjectStores
from firnline.stores.removers import LocalFolders, ObjectRetire, OwnDiscard
from firnline.testing.dated import Clock, Dated
from firnline.testing.faults import Fault, NoFault, PortRequest
from firnline.testing.faulty import FaultyDelete, FaultyDiscard, FaultyFolders, FaultyStore, silence

if TYPE_CHECKING:
    from firnline.ports.stores import ReadWrite

LEASE = LeaseTimes(24_000, 6_000, skew_ms=0)
_numbers = count(1)


@dataclass(frozen=True)
class FaultyRetire:
    retirer: Retire
    fault: Fault

    def retire(self, key: str, data: bytes) -> bool:
        send = PortRequest("delete", key, lambda: self.retirer.retire(key, data), lambda: silence("delete", key))
        return self.fault.pass_on(send)

    def retire_folder(self, folder: str) -> None:
        act = PortRequest(
            "delete", folder, lambda: self.retirer.retire_folder(folder), lambda: silence("delete", folder)
        )
        self.fault.pass_on(act)


class FolderProcess(Lake):
    """Everything that the command line can do with a table by its location, as one process does it."""

    def __init__(
        self,
        fault: Fault | None = None,
        *,
        clock: Clock | None = None,
        policy: str = "",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`settings` are those of the store, by PyIceberg's names; none for local files."""
        super().__init__(parse_policy(policy, "a test's policy") if policy else Section(), engine="local")
        self.fault = fault or NoFault()
        self.clock = clock or Clock()
        self.owner = f"process {next(_numbers)}"
        self.settings = dict(settings or {})
        self.store: ReadWrite = Dated(FaultyStore(ObjectStores(self.settings), self.fault), self.clock)

    def tables(self, catalog: str | None = None) -> list[TableName]:
        return []

    def settings_of(self, name: TableName) -> Mapping[str, str]:
        return self.settings

    def store_of(self, settings: Mapping[str, str]) -> ReadWrite:
        return self.store

    def _retire(self, name: TableName, store: ReadWrite) -> Retire:
        return FaultyRetire(ObjectRetire(ObjectStores(self.settings), self.settings), self.fault)

    def _table_context(self, place: TablePlace) -> TableContext:
        return replace(
            super()._table_context(place),
            now=self.clock,
            owner=self.owner,
            lease_times=LEASE,
            discard=FaultyDiscard(OwnDiscard(self.settings), self.fault),
        )

    def _deleter(self, name: TableName, run: Run) -> Deleter:
        """Returns the power to delete, one key after another: so that the n-th delete is always the same."""
        folders = FaultyFolders(LocalFolders(), self.fault)
        return Deleter(FaultyDelete(ObjectDelete(self.settings), self.fault), LocalDeleteMany(threads=1), folders)
