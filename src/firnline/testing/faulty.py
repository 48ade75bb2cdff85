"""The ports of one process, all passing through one fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Never

from firnline.ports.catalogs import Attempt, Catalog, Commit, Step, Still, SwapOutcome, TableName, Version
from firnline.ports.delete import Delete, DeleteOutcome, Doomed, Fate, MaySend, RemoveEmpty, always
from firnline.ports.discard import Discard, OwnKey
from firnline.ports.formats import Amendment, UndoWindow
from firnline.ports.retire import Retire
from firnline.ports.stores import ObjectMeta, ReadWrite, TaggedObject
from firnline.testing.faults import Answer, Fault, PortRequest, no_answer


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

    def names(self, folder: str) -> Sequence[str]:
        return self._sent("names", folder, lambda: self.store.names(folder))

    def links(self, folder: str) -> Sequence[str]:
        return self._sent("links", folder, lambda: self.store.links(folder))

    def put(self, key: str, data: bytes) -> None:
        self._sent("put", key, lambda: self.store.put(key, data))

    def put_if_absent(self, key: str, data: bytes) -> None:
        self._sent("put_if_absent", key, lambda: self.store.put_if_absent(key, data))

    def get_tagged(self, key: str) -> TaggedObject:
        return self._sent("get", key, lambda: self.store.get_tagged(key))

    def put_if_match(self, key: str, data: bytes, seen: TaggedObject) -> None:
        self._sent("put_if_match", key, lambda: self.store.put_if_match(key, data, seen))

    def _sent(self, verb: str, key: str, send: Callable[[], Answer]) -> Answer:
        return self.fault.pass_on(PortRequest(verb, key, send, lambda: silence(verb, key)))


@dataclass(frozen=True)
class FaultyDelete:
    """Each key is a request of its own: a process can die between any two of them."""

    delete_port: Delete
    fault: Fault

    def delete(self, doomed: Sequence[Doomed], may_send: MaySend = always) -> list[DeleteOutcome]:
        return [self._one(each, may_send) for each in doomed]

    def share(self, parts: int) -> FaultyDelete:
        return FaultyDelete(self.delete_port.share(parts), self.fault)

    def _one(self, each: Doomed, may_send: MaySend) -> DeleteOutcome:
        may_send()
        unknown = DeleteOutcome(each.key, Fate.FAILED, "no answer")
        return self.fault.pass_on(
            PortRequest("delete", each.key, lambda: self.delete_port.delete([each])[0], lambda: unknown)
        )


@dataclass(frozen=True)
class FaultyFolders:
    folders: RemoveEmpty
    fault: Fault

    def remove_empty(self, folder: str) -> bool:
        return self.fault.pass_on(
            PortRequest("delete", folder, lambda: self.folders.remove_empty(folder), lambda: silence("delete", folder))
        )


@dataclass(frozen=True)
class FaultyDiscard:
    discard_port: Discard
    fault: Fault

    def discard(self, keys: Sequence[OwnKey]) -> None:
        for key in keys:
            self.fault.pass_on(PortRequest("discard", str(key), partial(self._one, key), lambda: None))

    def _one(self, key: OwnKey) -> None:
        self.discard_port.discard([key])


@dataclass(frozen=True)
class FaultyCommits:
    """A commit writes an object before it moves the pointer: give the commits inside a store with the same fault."""

    commits: Commit
    fault: Fault

    def prepare(self, table: TableName, step: Step) -> Attempt:
        return self.commits.prepare(table, step)

    def commit(self, attempt: Attempt) -> SwapOutcome:
        key = str(attempt.proof["location"] or attempt.table)
        send = partial(self.commits.commit, attempt)
        return self.fault.pass_on(PortRequest("commit", key, send, lambda: SwapOutcome.UNKNOWN))

    def landed(self, proof: Mapping[str, Any], now: Version, still: Still = always) -> bool:
        return self.commits.landed(proof, now, still)

    def fence(self, proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
        return self.commits.fence(proofs, now)


@dataclass(frozen=True)
class FaultyCatalog:
    catalog: Catalog
    fault: Fault

    @property
    def name(self) -> str:
        return self.catalog.name

    @property
    def format(self) -> str:
        return self.catalog.format

    @property
    def undo(self) -> UndoWindow:
        return self.catalog.undo

    def vended(self, table: TableName) -> Mapping[str, str]:
        return self.catalog.vended(table)

    def tables(self) -> Iterator[TableName]:
        return iter(self._sent("tables", self.name, lambda: list(self.catalog.tables())))

    def pointers(self) -> Iterator[tuple[TableName, str | None]]:
        return iter(self._sent("pointers", self.name, lambda: list(self.catalog.pointers())))

    def locate(self, table: TableName) -> str:
        return self._sent("locate", str(table), lambda: self.catalog.locate(table))

    def _sent(self, verb: str, key: str, send: Callable[[], Answer]) -> Answer:
        return self.fault.pass_on(PortRequest(verb, key, send, lambda: silence(verb, key)))


def silence(verb: str, key: str) -> Never:
    raise no_answer(verb, key)


@dataclass(frozen=True)
class FaultyRetire:
    retirer: Retire
    fault: Fault

    def retire(self, key: str, data: bytes) -> bool:
        send = PortRequest("delete", key, lambda: self.retirer.retire(key, data), lambda: silence("delete", key))
        return self.fault.pass_on(send)

    def retires_as_read(self, folder: str) -> bool:
        return self.retirer.retires_as_read(folder)

    def retire_as_read(self, key: str, seen: TaggedObject) -> bool:
        send = PortRequest(
            "delete", key, lambda: self.retirer.retire_as_read(key, seen), lambda: silence("delete", key)
        )
        return self.fault.pass_on(send)

    def retire_folder(self, folder: str) -> None:
        act = PortRequest(
            "delete", folder, lambda: self.retirer.retire_folder(folder), lambda: silence("delete", folder)
        )
        self.fault.pass_on(act)
