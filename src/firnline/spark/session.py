"""Getting a Spark session: the caller's own, one behind a Connect server that answers, or a quiet one of ours.

Spark itself tries again for ten minutes and more, without a word, also where the address is simply wrong.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from firnline.answering import tell, told
from firnline.errors import UsageError
from firnline.ports.progress import SPARK_IS_HEARD
from firnline.spark.executors.shipping import equipped
from firnline.spark.jvm.classes import quick_start
from firnline.spark.jvm.first_words import unheard
from firnline.spark.telling import said_by

if TYPE_CHECKING:
    from pyspark.sql.connect.client.retries import RetryPolicy


ANSWERS_WITHIN_S = 10.0
"""A server answers the first bytes of a connection in milliseconds; this also bridges its restart, which is why one
that refuses connections is waited for, too. That it does is told at once.
"""

_REFUSES_WITHIN_S = 0.5
_TRIES = 5
"""Spark waits four times longer before each: these come to a little more than a quarter of a minute."""

_HINT = "check SPARK_REMOTE and that the server runs; unset it, or say `--engine local`, to do without"


def refuse_unreachable(remote: str) -> None:
    """Raises UsageError unless a server speaks at this address in time.

    A connection alone proves nothing: that of a server that hangs is accepted by its machine. So the first words of
    the protocol are waited for, with the encryption that the address asks for. What is no address of a server, such as
    `local[2]`, is left to Spark.
    """
    if not remote.startswith("sc://"):
        return
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    address = DefaultChannelBuilder(remote)
    channel = address.toChannel()
    try:
        _wait_for(grpc.channel_ready_future(channel), address.endpoint)
    except grpc.FutureTimeoutError as silent:
        within = f"within {ANSWERS_WITHIN_S:g} s"
        raise UsageError(f"no Spark Connect server answers at {address.endpoint} {within}", _HINT) from silent
    finally:
        channel.close()


def _wait_for(answer: Any, endpoint: str) -> None:
    """Ends once a server spoke; says that it is waited for where that takes long. Raises FutureTimeoutError at last."""
    what = f"Spark Connect at {endpoint}"
    if _is_refused(endpoint):
        tell(what, "accepts no connections yet")
    with told(what):
        answer.result(timeout=ANSWERS_WITHIN_S)


def _is_refused(endpoint: str) -> bool:
    """Tells whether nobody listens there, which a channel keeps to itself."""
    host, _, port = endpoint.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_REFUSES_WITHIN_S):
            return False
    except ConnectionRefusedError:
        return True
    except OSError:
        return False


def hasty_policies() -> list[RetryPolicy]:
    """Returns what makes a session of ours give up on a server that went away: its sessions went with it."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    return [DefaultPolicy(max_retries=_TRIES)]


def reached(session: SparkSession) -> SparkSession:
    """Returns the session of a server, which does not wait for one that went away."""
    ours: Any = session
    ours.client.set_retry_policies(hasty_policies())
    return session


Session = SparkSession

_QUIET = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.log.level": "ERROR",
}
_LOCAL = {
    "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 2)),
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""A cluster has more cores than this machine, a page that shows its jobs, and an address that executors reach."""

_SAID = ("SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT")
"""Where Spark runs is said by its own settings, or by `spark-submit`, which started this process."""

OURS = "spark.firnline.started"
"""Set in a session that firnline started: settings of any other are its owner's."""

_START = "it needs Java 17 or newer (JAVA_HOME), or a cluster that answers; `--engine local` needs neither"


def session(given: SparkSession | None = None, *, brief: bool = False) -> SparkSession:
    """Returns the given session, the active one, or a new one where the environment says, with executors equipped.
    Raises UsageError where there can be none, or the given one was stopped. A brief one serves one command only.

    `SPARK_REMOTE` names a Spark Connect server, `SPARK_MASTER` a cluster; Spark's own ways are left to Spark. Tasks
    beside this process must run this very interpreter: with another Python they fail, and say so only in their logs.
    """
    if given is not None and is_stopped(given):
        raise UsageError("the Spark session that was handed in was stopped", hint="open the lake with one that runs")
    try:
        return equipped(given or active() or _marked(_started(brief)))
    except PySparkException as problem:
        raise UsageError(f"Spark cannot be started: {said_by(problem)}", _how_to_start()) from problem


def _how_to_start() -> str:
    packages = _packages_asked()
    return f"Spark must find {packages}, which FIRNLINE_SPARK_PACKAGES names; {_START}" if packages else _START


def _marked(started: SparkSession) -> SparkSession:
    started.conf.set(OURS, "true")
    return started


def is_ours(at_hand: SparkSession) -> bool:
    """Tells whether firnline started the session, and may set it up as it likes."""
    return at_hand.conf.get(OURS, None) is not None


def active() -> SparkSession | None:
    """Returns the session of this thread that runs, else that of this process; None where none does.

    A pool's thread has none of its own. To start one there would be to get the process's, which its owner set up, and
    to write our settings over theirs.
    """
    try:
        found = SparkSession.active()
    except PySparkException:
        return None
    return None if is_stopped(found) else found


def is_stopped(given: SparkSession) -> bool:
    """Tells whether a session has ended: what it is asked then fails with whatever its remains say."""
    from py4j.protocol import Py4JError

    if is_remote():
        ended: Any = given
        return bool(ended.is_stopped)
    try:
        return given.sparkContext.defaultParallelism < 1
    except (AttributeError, Py4JError):
        return True


def _started(brief: bool) -> SparkSession:
    builder = SparkSession.builder.appName("firnline")
    remote, master = os.environ.get("SPARK_REMOTE"), os.environ.get("SPARK_MASTER")
    os.environ.setdefault("PYSPARK_PYTHON", _python(None if remote else master))
    if remote:
        refuse_unreachable(remote)
        return reached(builder.remote(remote).getOrCreate())
    settings = {**_QUIET, **_packages()}
    if master:
        builder = builder.master(master)
    elif not _configured():
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder, settings = builder.master("local[*]"), {**settings, **_LOCAL}
    for name, value in settings.items():
        builder = builder.config(name, value)
    with quick_start(brief=brief), nullcontext() if SPARK_IS_HEARD.get()() else unheard():
        return builder.getOrCreate()


def _python(master: str | None) -> str:
    """Returns the Python of the tasks: this very one if they run beside this process, else one of its version."""
    elsewhere = master is not None and master.partition("[")[0] != "local"
    return "python{}.{}".format(*sys.version_info) if elsewhere else sys.executable


def _packages() -> dict[str, str]:
    """Returns the jars that a new session gets, such as Iceberg's own runtime; Spark fetches them by name."""
    packages = _packages_asked()
    return {"spark.jars.packages": packages} if packages else {}


def _packages_asked() -> str | None:
    return os.environ.get("FIRNLINE_SPARK_PACKAGES")


def _configured() -> bool:
    """Tells whether the environment already says where Spark runs."""
    return any(name in os.environ for name in _SAID)
