"""Stores that count what is asked of them, and by how many: how a test shows that each unit is opened once."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from threading import Lock

from firnline.ports.stores import ObjectMeta, Read, ReadWrite, TaggedObject
from firnline.stores.wrappers.read_only import ReadOnly


class _Noting(ABC):
    """Hands every verb on, after noting it."""

    def __init__(self, store: ReadWrite) -> None:
        self._store = store

    @abstractmethod
    def _note(self, verb: str, key: str) -> None: ...

    def get(self, key: str) -> bytes:
        self._note("get", key)
        return self._store.get(key)

    def head(self, key: str) -> ObjectMeta:
        self._note("head", key)
        return self._store.head(key)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        self._note("list", prefix)
        return self._store.list(prefix)

    def names(self, folder: str) -> Sequence[str]:
        self._note("names", folder)
        return self._store.names(folder)

    def links(self, folder: str) -> Sequence[str]:
        self._note("links", folder)
        return self._store.links(folder)

    def put(self, key: str, data: bytes) -> None:
        self._note("put", key)
        self._store.put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> None:
        self._note("put_if_absent", key)
        self._store.put_if_absent(key, data)

    def get_tagged(self, key: str) -> TaggedObject:
        self._note("get", key)
        return self._store.get_tagged(key)

    def put_if_match(self, key: str, data: bytes, seen: TaggedObject) -> None:
        self._note("put_if_match", key)
        self._store.put_if_match(key, data, seen)


class Counting(_Noting):
    """Counts the calls of this process.

    It refuses to be pickled: a copy's calls would be lost, see CountingLog.
    """

    def __init__(self, store: ReadWrite) -> None:
        super().__init__(store)
        self._calls: Counter[tuple[str, str]] = Counter()
        self._lock = Lock()

    def calls(self) -> Counter[tuple[str, str]]:
        """Returns how often each (verb, key) was asked for, failed calls included."""
        with self._lock:
            return Counter(self._calls)

    def _note(self, verb: str, key: str) -> None:
        with self._lock:
            self._calls[verb, key] += 1


class CountingLog(_Noting):
    """Counts the calls of every pickled copy of itself, in any process, through one local file that only
    grows.
    """

    def __init__(self, store: ReadWrite, log_path: str) -> None:
        super().__init__(store)
        self._log_path = os.path.abspath(log_path)

    def calls(self) -> Counter[tuple[str, str]]:
        """Returns how often each (verb, key) was asked for, by all copies together."""
        if not os.path.exists(self._log_path):
            return Counter()
        with open(self._log_path, encoding="utf-8") as log:
            lines = [json.loads(line) for line in log]
        return Counter((verb, key) for verb, key in lines)

    def _note(self, verb: str, key: str) -> None:
        # One write on a file opened for appending: lines of different processes do not mix.
        log = os.open(self._log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(log, json.dumps([verb, key]).encode() + b"\n")
        finally:
            os.close(log)


class Divided(ReadOnly):
    """A store that knows as one of how many it works."""

    def __init__(self, store: Read, parts: int = 1) -> None:
        super().__init__(store)
        self.parts = parts

    def share(self, parts: int) -> Divided:
        return Divided(self._store, self.parts * parts)
