"""Real clusters of this machine, on 127.0.0.1 only: a standalone master with two workers, and Spark Connect."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

import firnline
from harness.servers.spark_classes import jvm_options

SCRIPT = Path(__file__).with_name("on_cluster.py")
SOURCE = str(Path(next(iter(firnline.__path__))).parent)
INSTALLED = Path(pyspark.__file__).parent
_PATIENCE_S = 300
LACKED = "obstore"
"""What executors of the small clusters lack beside firnline: not large, so that it is packed at once, and needed."""


@dataclass(frozen=True)
class Cluster:
    """A master, and the Python that its executors have."""

    master: str
    python: Path


def bare_python(folder: Path, linked: Iterable[str]) -> Path:
    """Returns an interpreter that has nothing installed but these packages."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in linked:
        for source in INSTALLED.parent.glob(f"{name}*"):
            (site / source.name).symlink_to(source)
    return folder / "bin" / "python"


def python_without(folder: Path, lacked: Iterable[str] = ()) -> Path:
    """Returns an interpreter that has what this one has, but for firnline and what is lacked."""
    absent = {"firnline", *lacked}
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for source in INSTALLED.parent.iterdir():
        if source.suffix != ".pth" and re.split(r"\W|-", source.name)[0] not in absent:
            (site / source.name).symlink_to(source)
    return folder / "bin" / "python"


def spark_home(folder: Path) -> Path:
    """Returns a home of Spark whose work folder is not the installed package's own."""
    folder.mkdir()
    for name in ("bin", "jars", "python"):
        (folder / name).symlink_to(INSTALLED / name)
    return folder


def surroundings(folder: Path) -> dict[str, str]:
    """Returns the environment of everything that belongs to a cluster. Nobody finds this checkout through it."""
    return {
        **{name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYSPARK_PYTHON")},
        "SPARK_HOME": str(spark_home(folder / "home")),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        "JDK_JAVA_OPTIONS": jvm_options(),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }


def first_on_path(python: Path, around: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment where this interpreter is the one that is found by its name."""
    return {**around, "PATH": f"{python.parent}{os.pathsep}{around['PATH']}"}


def run_on(
    where: Mapping[str, str], around: Mapping[str, str], folder: Path, *checks: str, script: Path = SCRIPT
) -> dict[str, Any]:
    """Returns what the script said of these checks, or of all; fails with all that it wrote."""
    start = f"import runpy, sys; sys.path.insert(0, {SOURCE!r}); runpy.run_path({str(script)!r}, run_name='__main__')"
    command = [sys.executable, "-c", start, str(folder), *checks]
    ran = subprocess.run(command, env={**around, **where}, capture_output=True, text=True, timeout=900, check=False)
    assert ran.returncode == 0, ran.stderr[-6_000:] + ran.stdout[-2_000:]
    return json.loads(ran.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@contextmanager
def standalone(around: Mapping[str, str], folder: Path, workers: int = 2) -> Iterator[str]:
    """Yields the URL of a master whose workers have one core each."""
    port, (home, host) = free_port(), (around["SPARK_HOME"], "127.0.0.1")
    deploy = [f"{home}/bin/spark-class", "org.apache.spark.deploy"]
    with ExitStack() as running:
        master = [*deploy, "--host", host, "--port", str(port), "--webui-port", "0"]
        master[1] += ".master.Master"
        running.enter_context(process(master, around, folder / "master.log"))
        wait_for(port)
        for number in range(1, workers + 1):
            worker = [*deploy, "--host", host, "--webui-port", "0", "--cores", "1", "--memory", "1100m"]
            worker[1] += ".worker.Worker"
            worker += ["--work-dir", str(folder / f"work-{number}"), f"spark://{host}:{port}"]
            running.enter_context(process(worker, around, folder / f"worker-{number}.log"))
        yield f"spark://{host}:{port}"


@contextmanager
def connect_server(around: Mapping[str, str], folder: Path, cores: int = 2) -> Iterator[str]:
    """Yields the URL of a Spark Connect server that works with so many cores."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    command = [f"{around['SPARK_HOME']}/bin/spark-submit", "--master", f"local[{cores}]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    with process([*command, "spark-internal"], around, folder / "connect.log"):
        wait_for(port)
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def process(command: list[str], around: Mapping[str, str], log: Path) -> Iterator[None]:
    """Runs a process for as long as the block lasts. Scripts of Spark end in `exec`, so its id is that of the JVM."""
    with log.open("wb") as out, subprocess.Popen(command, env=dict(around), stdout=out, stderr=out) as running:
        try:
            yield
        finally:
            running.terminate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    """Returns when something listens there."""
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < end, f"nothing listens on port {port}"
            time.sleep(0.2)
        else:
            return
