"""A crowd: several real tables of one catalog in any folders, near each other or in each other, and stray files.

crowd = Crowd.make(folder)
orders = crowd.table("orders")                      # lives in …/lake/orders, three commits old
crowd.table("nested", inside="orders/data/x")       # wherever somebody put it
stray = crowd.stray("orders/data/left.parquet")     # ten days old, named by nobody
crowd.process().orphans(crowd.name("orders"), grace="0s", consent=lambda plan: True)
crowd.check()                                       # raises where a snapshot of any table lost a file
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from firnline.app.places import now_ms
from firnline.catalogs.sql import SqlCatalog
from firnline.journal.lease import LeaseTimes
from firnline.model.times import DAY_MS
from firnline.testing.dated import Clock, date
from firnline.testing.faults import Fault
from harness.judging import Judge
from harness.pointers import CATALOG, NAMESPACE, Pointers
from harness.processes import Process
from harness.writers import Ledger, Writer

LEASE = LeaseTimes(24_000, 6_000, skew_ms=0)
_OLD_DAYS = 10.0


@dataclass
class Crowd:
    """Tables, files and the clock of one lake. `strays` are all files that were planted."""

    folder: Path
    pointers: Pointers
    clock: Clock
    ledger: Ledger
    catalog: SqlCatalog
    writers: dict[str, Writer] = field(default_factory=dict)
    strays: set[str] = field(default_factory=set)

    @staticmethod
    def make(folder: Path) -> Crowd:
        (folder / "lake").mkdir(parents=True, exist_ok=True)
        pointers = Pointers(folder / "catalog.db")
        pointers.create()
        return Crowd(folder, pointers, Clock(), Ledger(), SqlCatalog(CATALOG, pointers.uri))

    @property
    def lake(self) -> str:
        return f"file://{self.folder}/lake"

    def name(self, table: str) -> str:
        return f"{CATALOG}.{NAMESPACE}.{table}"

    def table(
        self, name: str, inside: str | None = None, properties: dict[str, str] | None = None, commits: int = 3
    ) -> Writer:
        """Returns the writer of a new table with some commits, of which the oldest files are as old as strays."""
        writer = Writer(f"{self.lake}/{inside or name}", self.pointers, name, self.clock, self.ledger)
        writer.create(properties or {})
        for _ in range(commits):
            writer.append(2)
        self.writers[name] = writer
        self.age(self.folder / "lake" / (inside or name))
        return writer

    def stray(self, path: str, days: float = _OLD_DAYS, data: bytes = b"nobody's") -> str:
        """Returns the location of a new file that nobody names, last written so many days ago."""
        file = self.folder / "lake" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        self.set_age(file, days)
        self.strays.add(f"{self.lake}/{path}")
        return f"{self.lake}/{path}"

    def age(self, folder: Path, days: float = _OLD_DAYS) -> None:
        for file in folder.rglob("*"):
            if file.is_file():
                self.set_age(file, days)

    def set_age(self, file: Path, days: float) -> None:
        """Sets when a file was last written; by the real clock, which is the store's."""
        date(file, now_ms() - days * DAY_MS)

    def process(self, fault: Fault | None = None, policy: str = "") -> Process:
        return Process(self.catalog, fault, clock=self.clock, lease=LEASE, policy=policy)

    def later(self, fault: Fault | None = None) -> Process:
        """Returns a process on the day that the clock was moved to, where the store's clock has moved as well."""
        return self.process(fault)

    def files(self) -> set[str]:
        """Returns every file of the lake, without firnline's own records."""
        found = (path for path in (self.folder / "lake").rglob("*") if path.is_file())
        return {f"file://{path}" for path in found if "_firnline" not in path.parts}

    def problems(self) -> Iterator[str]:
        return Judge(self.ledger).problems(self.pointers)

    def check(self) -> None:
        """Raises AssertionError where any snapshot of any table in the catalog lost a file or a row."""
        found = list(self.problems())
        assert not found, "\n".join(found)
