"""Who walks metadata and sends deletes: threads of this process, or Spark where that pays or was asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from firnline.errors import UsageError
from firnline.extras import has
from firnline.policy.limits import StoreLimits
from firnline.ports.progress import Progress, Silent

if TYPE_CHECKING:
    from firnline.ports.catalogs import TableName
    from firnline.ports.delete import DeleteMany
    from firnline.ports.engines import Engine
    from firnline.ports.formats import State, TableFormat
    from firnline.ports.packing import TransferMany
    from firnline.spark.session import Session

ENGINES = ("auto", "local", "spark")
_LARGE_SNAPSHOTS = 20_000
_LARGE_FILES = 2_000_000
_LARGE_PURGE = 1_000_000
_LARGE_COPY = 100_000
_SNAPSHOT_S, _FILE_S = 0.0003, 0.000004
"""What a snapshot and a file of a table take on threads, which use little more than one core (`bench/expire.py`)."""
_START_S, _OF_A_CORE = 8.0, 0.35
"""What a session takes to start, and what of that speed a core has on Spark: its rows go through Python and the JVM."""
_LARGE_LISTING = 1_000_000


_SPARK_IS_SAID = ("SPARK_MASTER", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT")
"""A cluster, a Connect server, or `spark-submit`, which sets the last one for the process that it starts."""


def is_active() -> bool:
    """Tells whether this process has a Spark session that runs, whichever thread asks; imports nothing to find out."""
    if "pyspark.sql" not in sys.modules:
        return False
    from firnline.spark.session import active

    return active() is not None


Weighed = tuple[str, str, int, int]
"""The engine that a table's policy names, where it is, its snapshots, and about how many files it has."""


_CALL_S = 20
"""For how long one call deletes at most, at the rate that was said."""


@dataclass
class Engines:
    """Chooses the engine for each piece of work. Raises UsageError for a name that is none of `ENGINES`. `part` is that
    of the stores' limits as which this process works. A session that is started is `brief` if it serves one command.
    """

    named: str = "auto"
    session: Session | None = None
    progress: Progress = field(default_factory=Silent)
    limits: StoreLimits = field(default_factory=StoreLimits)
    part: float = 1.0
    brief: bool = False
    _pays: bool = field(default=False, init=False)
    _deleting: Any = field(default_factory=Lock, init=False, repr=False)
    _copying: Any = field(default_factory=Lock, init=False, repr=False)
    _reading: Any = field(default_factory=Lock, init=False, repr=False)
    _at_work: Session | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.named not in ENGINES:
            raise UsageError(f"unknown engine {self.named!r}", hint=f"one of: {', '.join(ENGINES)}")

    def choose(self, state: State, table_format: TableFormat, named: str, entries: int | None = None) -> Engine:
        """Returns Spark where it was asked for or is at hand, and for large work; a small table must not wait for a
        session that would only be started for it. `entries` are known already, where given.
        """
        asked = named if self.named == "auto" else self.named
        if self._goes_to_spark(asked, partial(is_large, state, table_format, entries)):
            return self.spark(state.table, state.location)
        return self._local(asked, state.location)

    def choose_together(self, tables: Sequence[Weighed], of_all: int) -> list[Engine]:
        """Returns the engine of each table of a pass. `of_all` is how many tables there will be: it is all of the work
        that is weighed against the start of a session, and these stand for the rest.
        """
        share = of_all / max(1, len(tables))
        snapshots, files = (share * sum(column) for column in zip(*(each[2:] for each in tables), strict=True))
        self._pays = pays(snapshots, files, os.cpu_count() or 1)
        places = [place for _, place, *_ in tables]
        engines: dict[bool, Engine] = {}
        found: list[Engine] = []
        for named, _, *work in tables:
            asked = named if self.named == "auto" else self.named
            on_spark = self._goes_to_spark(asked, partial(self._is_worth, *work))
            if on_spark not in engines:
                of_several = self.spark("several tables", *places) if on_spark else self._local(asked, *places)
                engines[on_spark] = of_several
            found.append(engines[on_spark])
        return found

    @property
    def spreads(self) -> bool:
        """Whether tables that name no engine are walked on Spark, by all that is known of the work so far."""
        return self._goes_to_spark(self.named, lambda: self._pays)

    def _local(self, asked: str, *places: str) -> Engine:
        """Returns threads, as many as may read where the tables are; each place keeps to its own number of reads."""
        from firnline.local.engine import LocalEngine

        usual = LocalEngine(
            progress=self.progress, most_listed=_LARGE_LISTING if asked == "auto" and has("spark") else None
        )
        return replace(usual, threads=max(self.limits.at_once("reads", each) or usual.threads for each in places))

    def _is_worth(self, snapshots: int, files: int) -> bool:
        return self._pays or _large(snapshots, files)

    def _goes_to_spark(self, asked: str, is_large: Callable[[], bool]) -> bool:
        """Tells whether work goes to Spark: where that was asked for; and where no engine was, if it is installed, for
        work that is large, and for all if a session is at hand.
        """
        return asked == "spark" or (asked == "auto" and has("spark") and (self._at_hand or is_large()))

    @property
    def _at_hand(self) -> bool:
        """Whether there is a session, or the environment says where to get one."""
        return self.session is not None or any(name in os.environ for name in _SPARK_IS_SAID) or is_active()

    def spark(self, of: str, *places: str) -> Engine:
        """Returns Spark, with no more tasks that read than may where the tables are: a task reads one at the least."""
        from firnline.spark.engine import SparkEngine

        said = (self.limits.at_once("reads", each) for each in places)
        at_once = min((each for each in said if each is not None), default=None)
        turn = nullcontext() if at_once is None else self._reading
        return SparkEngine(self._opened(), self.progress, of, at_once, turn)

    def _opened(self) -> Session:
        from firnline.spark.session import session

        self._at_work = session(self.session, brief=self.brief)
        return self._at_work

    def stop_jobs(self) -> None:
        """Ends what runs on Spark for this process at the moment, but for deletes, whose outcomes must be told: who
        waits for it gets Interrupted.
        """
        if self._at_work is not None:
            from firnline.spark.streaming import stop_jobs

            stop_jobs(self._at_work)

    def delete_many(self, name: TableName, location: str, files: int) -> DeleteMany:
        """Returns who sends the deletes: executors where Spark was asked for or the list is long, else this process;
        as many at once, and as many between two looks, as may be sent where the table is.
        """
        at_once, most = self.limits.at_once("deletes", location), self._deletes_at_a_time(location)
        if self._goes_to_spark(self.named, lambda: files > _LARGE_PURGE):
            from firnline.spark.delete import SparkDeleteMany

            return SparkDeleteMany(self._opened(), str(name), at_once, most, self._deleting)
        from firnline.local.delete import LocalDeleteMany

        return LocalDeleteMany(at_once, most)

    def copy_many(self, name: TableName, location: str, files: int) -> TransferMany:
        """Returns who makes copies: executors where Spark was asked for or the list is long, else this process; as many
        at once as may write at `location`, where the copies go.
        """
        at_once = self.limits.at_once("writes", location)
        if self._goes_to_spark(self.named, lambda: files > _LARGE_COPY):
            from firnline.spark.copies.copying import SparkCopyMany

            return SparkCopyMany(self._opened(), str(name), at_once, self._copying)
        from firnline.local.copying import LocalCopyMany

        return LocalCopyMany(at_once)

    def _deletes_at_a_time(self, location: str) -> int | None:
        """Returns how many keys one call may bring where a rate was said: a process that is asked to stop does so after
        it, and executors have minutes, and not hours, before the lease that stands behind them may be another's.
        """
        rate = self.limits.limit("deletes-per-second", location)
        return None if rate is None else max(1, int(rate.value * self.part * _CALL_S))


def is_large(state: State, table_format: TableFormat, entries: int | None = None) -> bool:
    """Tells whether a walk is worth a Spark session, by what can be known of it beforehand."""
    return _large(len(state.graph), 0) or _large(0, table_format.entries(state) if entries is None else entries)


def _large(snapshots: int, files: int) -> bool:
    return snapshots > _LARGE_SNAPSHOTS or files > _LARGE_FILES


def pays(snapshots: float, files: float, cores: int) -> bool:
    """Tells whether a session of this machine's own is worth its start: whether what it saves of the time that threads
    need is more than that.
    """
    on_threads_s = snapshots * _SNAPSHOT_S + files * _FILE_S
    return on_threads_s - on_threads_s / (cores * _OF_A_CORE) > _START_S
