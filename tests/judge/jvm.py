"""The JVM that the judge runs in: Spark's own launcher with Iceberg's runtime jar, spoken to through py4j.

It is a process of its own beside any Spark session that firnline starts in the same test worker,
so neither can see the other's jars or settings.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from firnline.formats.iceberg.runtime import PACKAGE
from harness.servers.jars import for_spark

ICEBERG = PACKAGE.rpartition(":")[2]
SETTINGS = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}


class Jvm:
    """Java classes by name, and Java functions made of Java methods, so that no call comes back into Python."""

    def __init__(self, gateway: Any, exchange: Path) -> None:
        self.gateway = gateway
        self._exchange = exchange
        self.java = cache(self._java)
        self.function = cache(self._function)

    def _java(self, name: str) -> Any:
        found = self.gateway.jvm
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def iceberg(self, name: str) -> Any:
        return self.java(f"org.apache.iceberg.{name}")

    def type(self, name: str) -> Any:
        loader = self.java("java.lang.Thread").currentThread().getContextClassLoader()
        return self.java("java.lang.Class").forName(name, True, loader)

    def array(self, name: str, items: Iterable[Any]) -> Any:
        values = list(items)
        made = self.gateway.new_array(self.java(name), len(values))
        for index, value in enumerate(values):
            made[index] = value
        return made

    def map(self, values: dict[str, str]) -> Any:
        made = self.java("java.util.HashMap")()
        for key, value in values.items():
            made.put(key, value)
        return made

    def set(self, items: Iterable[Any]) -> Any:
        made = self.java("java.util.LinkedHashSet")()
        for item in items:
            made.add(item)
        return made

    def _function(self, owner: str, method: str, returns: str) -> Any:
        """A java.util.function.Function that calls one public method without arguments."""
        handle = self._handle(owner, method, self.type(returns))
        return self._implement("java.util.function.Function", handle)

    def consumer_into(self, queue: Any) -> Any:
        """A java.util.function.Consumer that adds to a ConcurrentLinkedQueue."""
        add = self._handle("java.util.concurrent.ConcurrentLinkedQueue", "add", self._boolean(), "java.lang.Object")
        return self._implement("java.util.function.Consumer", add.bindTo(queue))

    def base64(self) -> Any:
        """A java.util.function.Function from bytes to text; py4j takes bytes apart one by one."""
        text = self.type("java.lang.String")
        encode = self._handle("java.util.Base64$Encoder", "encodeToString", text, "[B")
        return self._implement("java.util.function.Function", encode.bindTo(self.java("java.util.Base64").getEncoder()))

    def _boolean(self) -> Any:
        return self.java("java.lang.Boolean").TYPE

    def _handle(self, owner: str, method: str, returns: Any, *arguments: str) -> Any:
        signature = self.java("java.lang.invoke.MethodType").methodType(returns, *map(self.type, arguments))
        lookup = self.java("java.lang.invoke.MethodHandles").publicLookup()
        return lookup.findVirtual(self.type(owner), method, signature)

    def _implement(self, interface: str, handle: Any) -> Any:
        proxies = self.java("java.lang.invoke.MethodHandleProxies")
        return proxies.asInterfaceInstance(self.type(interface), handle)

    def document(self, metadata: Any) -> dict[str, Any]:
        """A TableMetadata as Java writes it. Through a file: a long answer waits 40 ms on py4j's socket."""
        output = self.iceberg("Files").localOutput(str(self._exchange))
        self.iceberg("TableMetadataParser").overwrite(metadata, output)
        document: dict[str, Any] = json.loads(self._exchange.read_bytes())
        return document

    def texts(self, items: Any, function: Any = None) -> list[str]:
        """The strings of a Java iterable, fetched in one call (a call for each would take most of a test's time)."""
        if function is not None:
            closeable = self.iceberg("io.CloseableIterable")
            items = closeable.transform(closeable.combine(items, None), function)
        joined = self.java("java.lang.String").join("\n", items)
        return joined.split("\n") if joined else []


@contextmanager
def started(more: Sequence[str] = ()) -> Iterator[Jvm]:
    """A running JVM with Iceberg in it, and with the jars of `more` coordinates. Raises, with what the JVM said, if
    Java or the jars cannot be had.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryDirectory() as folder:
        gateway = _launch(said, [PACKAGE, *more])
        try:
            yield _checked(Jvm(gateway, Path(folder) / "exchange.metadata.json"))
        finally:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(timeout=30)


def _launch(said: IO[str], jars: Sequence[str]) -> Any:
    settings = SparkConf(loadDefaults=False)
    for key, value in {**SETTINGS, "spark.jars": for_spark(jars)}.items():
        settings.set(key, value)
    try:
        return launch_gateway(settings, popen_kwargs={"stderr": said})
    except Exception as error:
        said.seek(0)
        raise RuntimeError(f"the judge needs Java 17 and {PACKAGE}:\n{said.read()}") from error


def _checked(jvm: Jvm) -> Jvm:
    version = jvm.iceberg("IcebergBuild").version()
    if version != ICEBERG:
        raise RuntimeError(f"the judge is Iceberg {ICEBERG}, but the JVM loaded {version}")
    return jvm
