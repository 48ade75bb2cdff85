"""Who walks metadata and sends deletes: threads of this process, or Spark where that pays or was asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firnline.errors import UsageError
from firnline.ports.progress import Progress, Silent

if TYPE_CHECKING:
    from firnline.ports.catalogs import TableName
    from firnline.ports.delete import DeleteMany
    from firnline.ports.engines import Engine
    from firnline.ports.formats import State, TableFormat
    from firnline.spark.session import Session

ENGINES = ("auto", "local", "spark")
_LARGE_SNAPSHOTS = 20_000
_LARGE_FILES = 2_000_000
_LARGE_PURGE = 1_000_000
_LARGE_LISTING = 1_000_000


@dataclass
class Engines:
    """Chooses the engine for each piece of work. Raises UsageError for a name that is none of `ENGINES`."""

    named: str = "auto"
    session: Session | None = None
    progress: Progress = field(default_factory=Silent)

    def __post_init__(self) -> None:
        if self.named not in ENGINES:
            raise UsageError(f"unknown engine {self.named!r}", hint=f"one of: {', '.join(ENGINES)}")

    def choose(self, state: State, table_format: TableFormat, named: str) -> Engine:
        """Returns Spark for large work or where it was asked for; a small table must not wait for a session."""
        asked = named if self.named == "auto" else self.named
        if asked == "spark" or (asked == "auto" and is_large(state, table_format)):
            return self.spark(state.table)
        from firnline.local.engine import LocalEngine

        return LocalEngine(progress=self.progress, most_listed=_LARGE_LISTING if asked == "auto" else None)

    def spark(self, of: str) -> Engine:
        from firnline.spark.engine import SparkEngine
        from firnline.spark.session import session

        return SparkEngine(session(self.session), self.progress, of)

    def delete_many(self, name: TableName, files: int) -> DeleteMany:
        """Returns who sends the deletes: executors where Spark was asked for or the list is long, else this process."""
        if self.named == "spark" or (self.named == "auto" and files > _LARGE_PURGE):
            from firnline.spark.delete import SparkDeleteMany
            from firnline.spark.session import session

            return SparkDeleteMany(session(self.session), of=str(name))
        from firnline.local.delete import LocalDeleteMany

        return LocalDeleteMany()


def is_large(state: State, table_format: TableFormat) -> bool:
    """Tells whether a walk is worth a Spark session, by what can be known of it beforehand."""
    return len(state.graph) > _LARGE_SNAPSHOTS or table_format.entries(state) > _LARGE_FILES
