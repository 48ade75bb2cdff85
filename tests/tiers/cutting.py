"""The durable effects of firnline on files and SQLite, all passing through one fault: names that are given and taken
away, and commits of a catalog. So a process can be cut at each of them, whichever of its parts is at it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Never

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from firnline.testing.faults import Answer, Fault, PortRequest

_UNFINISHED = ".firnline-tmp-"
_VERBS = {"link": "put_if_absent", "rename": "put", "unlink": "delete", "rmdir": "delete"}


@contextmanager
def passing_through(fault: Fault, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets every effect in the folder pass through the fault, but for what lies in a cache."""
    with monkeypatch.context() as patched:
        for name, verb in _VERBS.items():
            patched.setattr(os, name, _call(fault, folder, verb, getattr(os, name)))
        patched.setattr(sa.engine.Connection, "commit", _commit(fault, sa.engine.Connection.commit))
        yield


def _call(fault: Fault, folder: Path, verb: str, real: Callable[..., None]) -> Callable[..., None]:
    def called(*arguments: Any, **options: Any) -> None:
        key = str(arguments[-1])
        if not key.startswith(f"{folder}/") or key.startswith(f"{folder}/cache") or _UNFINISHED in key:
            return real(*arguments, **options)
        return fault.pass_on(PortRequest(verb, key, lambda: real(*arguments, **options), lambda: _no_answer(key)))

    return called


def _commit(fault: Fault, real: Callable[[Any], None]) -> Callable[[Any], None]:
    def commit(connection: Any) -> None:
        key = str(connection.engine.url.database)
        fault.pass_on(PortRequest("commit", key, lambda: real(connection), lambda: _no_commit(key)))

    return commit


def _no_answer(key: str) -> Never:
    raise OSError(errno.EIO, "a fault that a test injected", key)


def _no_commit(key: str) -> Never:
    raise OperationalError("COMMIT", {}, Exception(f"no answer from {key}"))


@dataclass
class Before:
    """Another acts just before the first effect of a verb on a key with a text in it; `acted` tells whether it did."""

    verb: str
    text: str
    act: Callable[[], Any]
    acted: bool = field(default=False, init=False)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if not self.acted and request.verb == self.verb and self.text in request.key:
            self.acted = True
            self.act()
        return request.send()
