"""firnline keeps the history that matters and safely removes the rest.

>>> import firnline
>>> lake = firnline.open()                       # doctest: +SKIP
>>> lake.plan("lake.artemis.registry")           # doctest: +SKIP
"""

from __future__ import annotations

import signal
import sys

if (
    "".join(sys.argv[:1]).rpartition("/")[2] == "firnline"
    or (sys.argv[:1] == ["-m"] and "-m firnline " in f"{' '.join(sys.orig_argv)} ".replace("-mfirn", "-m firn"))
) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # 1. The command is started, and imports all of its parts: a quarter of a second.
    # 2. The operator presses Ctrl-C. Whichever import is under way ends in a traceback that tells nothing.
    # Nothing was begun, so the signal may end the process by itself; `main` of the command line listens again.
    # One that is ignored stays so. It stands before all other imports: these are some of the parts.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firnline.arrival import use_packed
from firnline.version import VERSION

if TYPE_CHECKING:
    from firnline.app.moments import KeepRules
    from firnline.app.pointers.verbs import OpenedPath
    from firnline.app.requests import RunOptions, SearchOptions
    from firnline.errors import FirnlineError
    from firnline.lake import Lake
    from firnline.ports.catalogs import TableName
    from firnline.ports.progress import Progress
    from firnline.spark.session import Session
    from firnline.worker.report import RoundReport
    from firnline.worker.working import Worker

__all__ = [
    "FirnlineError",
    "KeepRules",
    "Lake",
    "RunOptions",
    "SearchOptions",
    "TableName",
    "__version__",
    "open",
    "open_path",
    "open_worker",
    "policy_schema",
    "register",
]
__version__ = VERSION
use_packed(__path__[0])

_HOMES = {
    "FirnlineError": "firnline.errors",
    "KeepRules": "firnline.app.moments",
    "Lake": "firnline.lake",
    "RunOptions": "firnline.app.requests",
    "SearchOptions": "firnline.app.requests",
    "TableName": "firnline.ports.catalogs",
}
"""Types for annotations, each loaded when it is asked for: `import firnline` alone stays quick."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def open(
    config: str | Path | None = None,
    *,
    engine: str = "auto",
    session: Session | None = None,
    progress: Progress | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    trust: Iterable[str] = (),
) -> Lake:
    """Returns the lake that the configuration describes: a file that is named, or the one that the command line finds.

    `session` is a Spark session of yours: what is walked on Spark runs there, `spark.read.format("firnline")` works in
    it, and it is never stopped. `trust` names snapshots whose manifest lists are whole, whatever their summaries say.
    """
    from firnline.lake import open_lake

    lake = open_lake(
        None if config is None else str(config),
        engine=engine,
        session=session,
        progress=progress,
        interrupted=interrupted,
        trust=trust,
    )
    if session is not None and engine != "local":
        register(session, config)
    return lake


def open_path(
    path: str | Path,
    *,
    table: str | None = None,
    uuid: str | None = None,
    branch: str = "main",
    allow_outside: bool = False,
) -> OpenedPath:
    """Returns the table in a folder by its pointer, without a catalog; options as in `LakePointers.open_path`."""
    return open().pointers.open_path(str(path), table=table, uuid=uuid, branch=branch, allow_outside=allow_outside)


def open_worker(
    config: str | Path | None = None,
    *,
    memory: str | Path | None = None,
    told: Callable[[RoundReport], None] = lambda report: None,
    engine: str = "auto",
) -> Worker:
    """Returns what keeps every table in policy: `run(once=True)` is one round, and `stop.set()` ends it at the next
    batch. `told` is shown each round's report; `memory` is the file that says when to look again.
    """
    from firnline.worker.memory import usual_memory
    from firnline.worker.working import Worker

    file = None if config is None else str(config)
    return Worker(file, usual_memory(file) if memory is None else Path(memory), told, engine)


def policy_schema() -> dict[str, Any]:
    """Returns the JSON schema of firnline.yaml, by which editors complete and check it."""
    from firnline.policy.written.schema import policy_schema as made

    return made()


def register(session: Session, config: str | Path | None = None) -> None:
    """Makes `spark.read.format("firnline").load("lake.sales.orders")` work in a Spark session, on its executors too,
    with the configuration as it is found now.
    """
    from firnline.spark.session import session as running
    from firnline.sql.source import register as register_source

    register_source(running(session), None if config is None else str(config))
