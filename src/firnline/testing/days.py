"""Processes in a world where days pass: the store's clock moves with the world's, so that both always agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from firnline.ports.stores import ObjectMeta, ReadWrite
from firnline.testing.faults import Fault
from firnline.testing.processes import Clock, Process
from firnline.testing.world import LEASE, World


@dataclass(frozen=True)
class Dated:
    """A store that dates its objects `ahead` of the disk, as much as the world's clock is."""

    store: ReadWrite
    clock: Clock

    def get(self, key: str) -> bytes:
        return self.store.get(key)

    def head(self, key: str) -> ObjectMeta:
        found = self.store.head(key)
        return replace(found, modified_ms=(found.modified_ms or 0) + self.clock.ahead_ms)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        return self.store.list(prefix)

    def put(self, key: str, data: bytes) -> None:
        self.store.put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> None:
        self.store.put_if_absent(key, data)


def process_on_its_day(world: World, fault: Fault | None = None) -> Process:
    """Returns a process of the world, however far its clock has been moved."""
    process = Process(world.catalog, fault, clock=world.clock, policy=world.policy, lease=LEASE)
    vars(process)["store"] = Dated(process.store, world.clock)
    return process
