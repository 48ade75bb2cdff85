"""The ports of one process, all passing through one fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Never

from firnline.ports.catalogs import Catalog, Commit, SwapOutcome, TableName
from firnline.ports.delete import Delete, DeleteOutcome, Fate
from firnline.ports.discard import Discard, OwnKey
from firnline.ports.stores import ObjectMeta, ReadWrite
from firnline.testing.faults import Answer, Fault, Request, no_answer


@dataclass(frozen=True)
class FaultyStore:
    store: ReadWrite
    fault: Fault

    def get(self, key: str) -> bytes:
        return self._sent("get", key, lambda: self.store.get(key))

    def head(self, key: str) -> ObjectMeta:
        return self._sent("head", key, lambda: self.store.head(key))

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        return iter(self._sent("list", prefix, lambda: list(self.store.list(prefix))))

    def put(self, key: str, data: bytes) -> None:
        self._sent("put", key, lambda: self.store.put(key, data))

    def put_if_absent(self, key: str, data: bytes) -> None:
        self._sent("put_if_absent", key, lambda: self.store.put_if_absent(key, data))

    def _sent(self, verb: str, key: str, send: Callable[[], Answer]) -> Answer:
        return self.fault.pass_on(Request(verb, key, send, lambda: silence(verb, key)))


@dataclass(frozen=True)
class FaultyDelete:
    """Each key is a request of its own: a process can die between any two of them."""

    delete_port: Delete
    fault: Fault

    def delete(self, keys: Sequence[str]) -> list[DeleteOutcome]:
        return [self._one(key) for key in keys]

    def _one(self, key: str) -> DeleteOutcome:
        unknown = DeleteOutcome(key, Fate.FAILED, "no answer")
        return self.fault.pass_on(Request("delete", key, lambda: self.delete_port.delete([key])[0], lambda: unknown))


@dataclass(frozen=True)
class FaultyDiscard:
    discard_port: Discard
    fault: Fault

    def discard(self, keys: Sequence[OwnKey]) -> None:
        for key in keys:
            self.fault.pass_on(Request("discard", str(key), partial(self._one, key), lambda: None))

    def _one(self, key: OwnKey) -> None:
        self.discard_port.discard([key])


@dataclass(frozen=True)
class FaultyCommits:
    """A commit writes an object before it moves the pointer: give the commits inside a store with the same fault."""

    commits: Commit
    fault: Fault

    def successor(self, table: TableName, base: str, suggested: str) -> str:
        return self.commits.successor(table, base, suggested)

    def commit(self, table: TableName, base: str, new: str, data: bytes) -> SwapOutcome:
        return self.fault.pass_on(
            Request(
                "commit",
                new,
                lambda: self.commits.commit(table, base, new, data),
                lambda: SwapOutcome.UNKNOWN,
            )
        )


@dataclass(frozen=True)
class FaultyCatalog:
    catalog: Catalog
    fault: Fault

    @property
    def name(self) -> str:
        return self.catalog.name

    def tables(self) -> Iterator[TableName]:
        return self.catalog.tables()

    def locate(self, table: TableName) -> str:
        key = str(table)
        return self.fault.pass_on(
            Request("locate", key, lambda: self.catalog.locate(table), lambda: silence("locate", key))
        )


def silence(verb: str, key: str) -> Never:
    raise no_answer(verb, key)
