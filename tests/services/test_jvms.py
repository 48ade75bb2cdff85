"""The JVMs of the tests: what one says never stops it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.paimon.gateway import paimon_jvm
from harness.servers.rest import iceberg_jvm

PIPE = 64 << 10
"""What a pipe takes that nobody reads: a JVM that says more on it waits for ever."""


@contextmanager
def paimon() -> Iterator[Any]:
    with paimon_jvm() as jvm:
        yield jvm.gateway.jvm


@contextmanager
def iceberg() -> Iterator[Any]:
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile() as said,
        iceberg_jvm(Path(folder), said) as (jvm, _),
    ):
        yield jvm


@pytest.mark.parametrize("made", [paimon, iceberg])
@pytest.mark.timeout(60)
def test_a_jvm_may_say_much(made: Callable[[], AbstractContextManager[Any]]) -> None:
    with made() as jvm:
        log = jvm.org.slf4j.LoggerFactory.getLogger("much")
        for _ in range(8):
            log.error("x" * (PIPE // 4))
            jvm.java.lang.System.out.println("x" * (PIPE // 4))
