"""The servers of one test session: started once, found through one environment variable by every process of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.servers.moto import moto
from harness.servers.postgres import postgres
from harness.servers.process import Missing, Server
from harness.servers.redis import redis
from harness.servers.rest import rest
from harness.servers.s3 import make_bucket
from harness.servers.versitygw import versitygw

VARIABLE = "FIRNLINE_SERVERS"
REST_BUCKET = "firnline-rest"
_ALONE = {"moto": moto, "versitygw": versitygw, "postgres": postgres, "redis": redis}
NAMES = (*_ALONE, "rest")


class Servers:
    """Servers by name. The first who asks starts one; it runs until the stack is closed."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._found: dict[str, Server | Missing] = _handed_down()

    def get(self, name: str) -> Server:
        """Returns the server. Raises Missing where this machine cannot run it."""
        if name not in self._found:
            self._found[name] = self._started(name)
        found = self._found[name]
        if isinstance(found, Missing):
            raise found
        return found

    def start(self, names: Sequence[str]) -> None:
        """Starts several at once. What is missing is noted, and told to whoever asks for it."""
        # The threads live until the stack closes: the kernel ends a process with the thread that started it.
        pool = self._stack.enter_context(ThreadPoolExecutor(len(NAMES)))
        alone = [name for name in names if name in _ALONE and name not in self._found]
        self._found.update(zip(alone, pool.map(self._started, alone), strict=True))
        for name in set(names) - set(self._found):
            self._found[name] = pool.submit(self._started, name).result()

    def described(self) -> dict[str, Server | str]:
        """Returns each server that was asked for, or why it is not here."""
        return {name: str(each) if isinstance(each, Missing) else each for name, each in self._found.items()}

    def handed_down(self) -> dict[str, str]:
        """Returns the variable through which other processes find these servers."""
        texts = {name: each if isinstance(each, str) else asdict(each) for name, each in self.described().items()}
        return {VARIABLE: json.dumps(texts)}

    def _started(self, name: str) -> Server | Missing:
        try:
            return self._stack.enter_context(_ALONE[name](self._folder / name) if name in _ALONE else self._rest())
        except Missing as missing:
            return missing

    def _rest(self) -> AbstractContextManager[Server]:
        s3 = self.get("moto")
        warehouse = f"{make_bucket(s3, REST_BUCKET)}/warehouse"
        return rest(self._folder / "rest", warehouse, s3.settings)


@contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    """Yields servers that end with the block; those that were handed down by another process stay."""
    with ExitStack() as stack:
        yield Servers(folder, stack)


def _handed_down() -> dict[str, Server | Missing]:
    known: dict[str, Any] = json.loads(os.environ.get(VARIABLE, "{}"))
    return {name: Missing(each) if isinstance(each, str) else Server(**each) for name, each in known.items()}
