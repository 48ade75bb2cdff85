"""A JVM that only holds the jars it is given. No Java is compiled: py4j's gateway is its main class, and everything is
called from here.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from py4j.java_gateway import GatewayParameters, JavaGateway

from harness.servers.jars import java
from harness.servers.process import HOST, Missing, tied

# --die-on-broken-pipe: the JVM ends when its stdin closes, so also when this process is killed.
_MAIN = ("py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0")


@contextmanager
def gateway(
    jars: Sequence[str],
    options: Sequence[str],
    said: IO[bytes],
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[tuple[Any, int]]:
    """Yields the way into a new JVM, and its process id; what it says goes to the file `said`.

    Raises Missing with the end of that where the JVM does not start.
    """
    command = tied([java(), *options, "-cp", ":".join(jars), *_MAIN], signal.SIGTERM)
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=said, cwd=folder, env=environment)
    try:
        entered = _connected(process, said)
        try:
            yield entered, process.pid
        finally:
            # Otherwise the ends of Python's references to Java objects look for a JVM that is gone, loudly.
            entered.shutdown()
    finally:
        process.communicate()


def _connected(process: subprocess.Popen[bytes], said: IO[bytes]) -> Any:
    assert process.stdout is not None
    port, token = process.stdout.readline().strip(), process.stdout.readline().strip()
    if not port:
        process.wait()
        said.seek(0)
        raise Missing(f"a JVM does not start:\n{said.read()[-1500:].decode(errors='replace')}")
    settings = GatewayParameters(address=HOST, port=int(port), auth_token=token.decode(), auto_convert=True)
    entered = JavaGateway(gateway_parameters=settings)
    # Nobody reads the pipe any more: once it is full, whatever logs a line would wait for ever.
    entered.jvm.java.lang.System.setOut(entered.jvm.java.lang.System.err)
    return entered
