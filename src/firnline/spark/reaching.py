"""Reaching a Spark Connect server: whether one answers is asked before a session is made of it.

Spark itself tries again for ten minutes and more, without a word, also where the address is simply wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firnline.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import RetryPolicy

ANSWERS_WITHIN_S = 20.0
"""A server answers the first bytes of a connection in milliseconds; this also bridges its restart."""

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
        grpc.channel_ready_future(channel).result(timeout=ANSWERS_WITHIN_S)
    except grpc.FutureTimeoutError as silent:
        within = f"within {ANSWERS_WITHIN_S:g} s"
        raise UsageError(f"no Spark Connect server answers at {address.endpoint} {within}", _HINT) from silent
    finally:
        channel.close()


def hasty_policies() -> list[RetryPolicy]:
    """Returns what makes a session of ours give up on a server that went away: its sessions went with it."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    return [DefaultPolicy(max_retries=_TRIES)]


def reached(session: SparkSession) -> SparkSession:
    """Returns the session of a server, which does not wait for one that went away."""
    ours: Any = session
    ours.client.set_retry_policies(hasty_policies())
    return session
