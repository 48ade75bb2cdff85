"""A REST catalog: Iceberg's own reference servlet over its JdbcCatalog, in a JVM that only holds these."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from harness.servers.jars import fetch, spark_jars
from harness.servers.jvm import gateway
from harness.servers.process import HOST, Server
from harness.servers.s3 import REGION, answers_http

ICEBERG, JETTY = "1.11.0", "12.1.13"
COORDINATES = (
    f"org.apache.iceberg:iceberg-core:{ICEBERG}",
    f"org.apache.iceberg:iceberg-core:{ICEBERG}:tests",
    *(f"org.apache.iceberg:iceberg-{each}:{ICEBERG}" for each in ("api", "common", "bundled-guava", "aws")),
    f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}",
    f"org.eclipse.jetty.ee10:jetty-ee10-servlet:{JETTY}",
    *(f"org.eclipse.jetty:jetty-{each}:{JETTY}" for each in ("server", "http", "io", "util", "security", "session")),
    "jakarta.servlet:jakarta.servlet-api:6.0.0",
    "com.github.ben-manes.caffeine:caffeine:2.9.3",
    "org.apache.httpcomponents.client5:httpclient5:5.6.1",
    "org.apache.httpcomponents.core5:httpcore5:5.4",
    "org.apache.httpcomponents.core5:httpcore5-h2:5.4",
    "dev.failsafe:failsafe:3.3.2",
    "org.xerial:sqlite-jdbc:3.50.3.0",
)
# From pyspark: what reads local files, Avro and JSON, and the gateway itself.
_SHARED = (
    "py4j-",
    "hadoop-client-",
    "slf4j-api-",
    "jcl-over-slf4j-",
    "log4j-api-",
    "log4j-core-",
    "log4j-slf4j2-",
    "jackson-annotations-",
    "jackson-core-2",
    "jackson-databind-",
    "avro-1",
    "aircompressor-",
    "commons-compress-",
    "commons-io-",
    "commons-codec-",
    "commons-lang3-",
    "commons-logging-",
    "RoaringBitmap-",
    "shims-",
    "zstd-jni-",
)
_DATABASE = "rest.db"
_TRIES = 60
"""Of two seconds each: a JVM that loads its classes on a machine that is busy takes longer for its first answer."""
_JVM = ("-Xmx256m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=WARN")


@contextmanager
def rest(folder: Path, warehouse: str | None = None, properties: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Yields a REST catalog that keeps new tables under `warehouse` (FOLDER/warehouse where none is named).

    `properties` are the server's own, such as the settings of an S3 server. Clients get none of them: a client
    brings its own credentials. `settings["database"]` is where the server's SQLite database lies.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "rest.log").open("a+b") as said, iceberg_jvm(folder, said) as (jvm, pid):
        place = warehouse or f"file://{folder}/warehouse"
        port = _serve(jvm, _adapter(jvm, folder, {"warehouse": place, **(properties or {})}))
        if not any(answers_http(port, "/v1/config") for _ in range(_TRIES)):
            raise RuntimeError(f"the REST catalog does not answer, see {folder / 'rest.log'}")
        url = f"http://{HOST}:{port}"
        own = {"type": "rest", "uri": url, "warehouse": place, "database": f"{folder}/{_DATABASE}"}
        yield Server("rest", url, pid, own)


@contextmanager
def iceberg_jvm(folder: Path, said: IO[bytes], options: Sequence[str] = _JVM) -> Iterator[tuple[Any, int]]:
    """Yields a JVM with Iceberg in it, and its process id; it says what it has to say in the file `said`."""
    jars = [f"{fetch(COORDINATES)}/*", *spark_jars(*_SHARED)]
    with gateway(jars, options, said, folder, _environment()) as (entered, pid):
        yield entered.jvm, pid


def _environment() -> dict[str, str]:
    """Without the session's own AWS settings: the server must reach what it was told, and nothing else."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**kept, "AWS_REGION": REGION}


def _adapter(jvm: Any, folder: Path, properties: Mapping[str, str]) -> Any:
    iceberg = jvm.org.apache.iceberg
    catalog = iceberg.jdbc.JdbcCatalog()
    catalog.setConf(jvm.org.apache.hadoop.conf.Configuration())
    # One connection: SQLite answers "locked" to two writers, and the server would make a failure of it.
    own = {
        "uri": f"jdbc:sqlite:{folder}/{_DATABASE}?busy_timeout=30000",
        "clients": "1",
        "jdbc.schema-version": "V1",
        "io-impl": "org.apache.iceberg.io.ResolvingFileIO",
    }
    settings = jvm.java.util.HashMap()
    for key, value in {**own, **properties}.items():
        settings.put(key, value)
    catalog.initialize("firnline", settings)
    return iceberg.rest.RESTCatalogAdapter(catalog)


def _serve(jvm: Any, adapter: Any) -> int:
    """Returns the port on which the adapter is served."""
    jetty = jvm.org.eclipse.jetty
    servlet = jvm.org.apache.iceberg.rest.RESTCatalogServlet(adapter)
    handler = jetty.ee10.servlet.ServletContextHandler()
    handler.addServlet(jetty.ee10.servlet.ServletHolder(servlet), "/*")
    server = jetty.server.Server()
    connector = jetty.server.ServerConnector(server)
    connector.setHost(HOST)
    connector.setPort(0)
    server.addConnector(connector)
    server.setHandler(handler)
    server.start()
    return int(connector.getLocalPort())
