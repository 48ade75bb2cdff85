"""One firnline process on a table in a folder: the real composition root, with every port behind a fault."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING

from firnline.app.catalogs import Catalogs
from firnline.journal.lease import LeaseTimes
from firnline.lake import Lake
from firnline.policy.parse import Section, parse_policy
from firnline.ports.catalogs import TableName
from firnline.stores.objects import ObjectStores
from firnline.testing.dated import Clock, Dated
from firnline.testing.faults import Fault, NoFault
from firnline.testing.faulty import FaultyStore
from firnline.testing.process_parts import OneByOne, ProcessPlaces, WorldStores

if TYPE_CHECKING:
    from firnline.ports.stores import ReadWrite

LEASE = LeaseTimes(24_000, 6_000, skew_ms=0)
_numbers = count(1)


class NoCatalogs(Catalogs):
    def tables(self, catalog: str | None = None) -> list[TableName]:
        return []


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
        config = parse_policy(policy, "a test's policy") if policy else Section()
        self.fault = fault or NoFault()
        self.clock = clock or Clock()
        said = dict(settings or {})
        self.store: ReadWrite = Dated(FaultyStore(ObjectStores(said), self.fault), self.clock)
        catalogs = NoCatalogs()
        stores = WorldStores(config, catalogs, self.fault, self.store, said)
        places = ProcessPlaces(config, catalogs, stores, OneByOne("local"), clock=self.clock)
        places.owner, places.lease_times = f"process {next(_numbers)}", LEASE
        super().__init__(places)
