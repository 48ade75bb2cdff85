"""Processes in a world where days pass: the store's clock moves with the world's, so that both always agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from firnline.ports.stores import ObjectMeta, ReadWrite
from firnline.testing.faults import Fault
from firnline.testing.processes import Clock, Process
from firnline.testing.world import LEASE, World


@dataclass(frozen=True)
class Dated:
    """A store that dates firnline's own records `ahead` of the disk, as much as the world's clock is.

    Table files keep their dates: they were written before the clock was moved.
    """

    store: ReadWrite
    clock: Clock

    def get(self, key: str) -> bytes:
        return self.store.get(key)

    def head(self, key: str) -> ObjectMeta:
        found = self.store.head(key)
        moved = self.clock.ahead_ms if "/_firnline/" in key else 0
        return replace(found, modified_ms=(found.modified_ms or 0) + moved)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        return self.store.list(prefix)

    def names(self, folder: str) -> Sequence[str]:
        return self.store.names(folder)

    def put(self, key: str, data: bytes) -> None:
        self.store.put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> None:
        self.store.put_if_absent(key, data)


def process_on_its_day(world: World, fault: Fault | None = None) -> Process:
    """Returns a process of the world, however far its clock has been moved."""
    return dated(Process(world.catalog, fault, clock=world.clock, policy=world.policy, lease=LEASE), world.clock)


def dated(process: Process, clock: Clock) -> Process:
    """Returns the process on a store whose own clock was moved as well."""
    vars(process)["store"] = Dated(process.store, clock)
    return process
