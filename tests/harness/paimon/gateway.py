"""Paimon's Java API: paimon-bundle in a JVM that only holds it and what it needs of pyspark's jars.

No Java is compiled: py4j's gateway starts as the JVM's main class, and everything is called from here.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import IO, Any

from py4j.java_gateway import GatewayParameters, JavaGateway

from harness.servers.jars import fetch, java, spark_jars
from harness.servers.process import HOST, Missing, tied

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
    classpath = ":".join([f"{fetch([_BUNDLE.format(version)])}/*", *spark_jars(*_SHARED)])
    # --die-on-broken-pipe: the JVM ends when its stdin closes, so also when this process is killed.
    main = ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]
    command = tied([java(), *_OPTIONS, "-cp", classpath, *main], signal.SIGTERM)
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said)
        try:
            gateway = _connected(process, said)
            try:
                yield Jvm(gateway)
            finally:
                # Otherwise the ends of Python's references to Java objects look for a JVM that is gone, loudly.
                gateway.shutdown()
        finally:
            process.communicate()


def _connected(process: subprocess.Popen[bytes], said: IO[bytes]) -> Any:
    assert process.stdout is not None
    port, token = process.stdout.readline().strip(), process.stdout.readline().strip()
    if not port:
        process.wait()
        said.seek(0)
        raise Missing(f"the JVM with Paimon does not start:\n{said.read()[-1500:].decode(errors='replace')}")
    settings = GatewayParameters(address=HOST, port=int(port), auth_token=token.decode(), auto_convert=True)
    return JavaGateway(gateway_parameters=settings)
