"""Paimon's Java API: paimon-bundle in a JVM that only holds it and what it needs of pyspark's jars."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from harness.servers.jars import fetch, spark_jars
from harness.servers.jvm import gateway

VERSION = "1.4.2"
_BUNDLE = "org.apache.paimon:paimon-bundle:{}"
_SHARED = (
    "py4j-", "hadoop-client-", "snappy-java-", "slf4j-api-", "jcl-over-slf4j-", "log4j-api-", "log4j-core-",
    "log4j-slf4j2-",
)  # fmt: skip
_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=ERROR")


class Jvm:
    """Paimon's Java classes by name, and Python values as Java ones."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self.java = cache(self._java)

    def _java(self, name: str) -> Any:
        found = self.gateway.jvm
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def paimon(self, name: str) -> Any:
        return self.java(f"org.apache.paimon.{name}")

    def map(self, values: Mapping[str, str | None]) -> Any:
        made = self.java("java.util.HashMap")()
        for key, value in values.items():
            made.put(key, value)
        return made

    def list(self, items: Iterable[Any]) -> Any:
        made = self.java("java.util.ArrayList")()
        for item in items:
            made.add(item)
        return made

    def duration(self, milliseconds: int) -> Any:
        return self.java("java.time.Duration").ofMillis(milliseconds)


@contextmanager
def paimon_jvm(version: str = VERSION) -> Iterator[Jvm]:
    """Yields a JVM with a version of Paimon in it. Raises Missing where Java or the jar cannot be had."""
    jars = [f"{fetch([_BUNDLE.format(version)])}/*", *spark_jars(*_SHARED)]
    with tempfile.TemporaryFile() as said, gateway(jars, _OPTIONS, said) as (entered, _):
        yield Jvm(entered)
