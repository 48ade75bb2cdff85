"""Where a run's record lies, and what a run is called.

    ROOT/runs/20260822T090000Z-3f9a2c/plan.json            what was decided, written last: with it the run exists
                                      victims/0-00000.parquet  the written list, in the order of deletion
                                      walked/00000.parquet     units that kept snapshots reach
                                      searched/00000.parquet   units that a search opened, of all tables
                                      events/000001.json       what happened, one object each
                                      outcomes/0-00000-1.parquet
    ROOT/lease/000000000001.json
    ROOT/clock/5f0c…                                       empty; the store dates it, and so tells its time

ROOT is `_firnline` in the table's own folder, where orphan removal of other engines does not look, unless the
operator names another place with `records`.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from firnline.errors import UsageError
from firnline.model.locations import join
from firnline.model.names import is_location, without_quoted

FOLDER = "_firnline"
PROPERTIES = f"{FOLDER}/properties.json"
"""What firnline notes about a table, below its folder, where the format has no properties of its own for that."""
_STAMP = r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}"
_STAMPED = re.compile(rf".@{_STAMP}\Z", re.DOTALL)


def names_run(text: str) -> bool:
    """Tells whether a text names a run rather than a table: paths and quoted names may hold an `@` too."""
    if is_location(text):
        return _STAMPED.search(text) is not None
    return looks_like_stamp(text) or "@" in without_quoted(text)


def is_stamp(text: str) -> bool:
    """Tells whether a text is the part of a run's name that follows the table."""
    return re.fullmatch(_STAMP, text) is not None


def looks_like_stamp(text: str) -> bool:
    """Tells whether a text was meant as such a part, though letters of it may be missing or wrong: no table has a name
    of that form.
    """
    return re.fullmatch(r"[0-9]{8}T[0-9]{6}Z(-[0-9A-Za-z]*)?", text) is not None


@dataclass(frozen=True, slots=True)
class RunId:
    """`TABLE@STAMP-RANDOM`: it names the table, so a run id alone finds its record."""

    table: str
    stamp: str

    def __str__(self) -> str:
        return f"{self.table}@{self.stamp}"

    @staticmethod
    def new(table: str, now_ms: int) -> RunId:
        moment = datetime.fromtimestamp(now_ms / 1000, UTC)
        return RunId(table, f"{moment:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}")

    @staticmethod
    def parse(text: str) -> RunId:
        table, at, stamp = text.rpartition("@")
        if not at or not table or not stamp or "/" in stamp:
            raise UsageError(f"not a run: {text!r}", hint="a run is named TABLE@STAMP, as `firnline runs` shows it")
        return RunId(table, stamp)


@dataclass(frozen=True, slots=True)
class RecordFolder:
    """The names of all objects of one run's record."""

    root: str
    stamp: str

    @property
    def folder(self) -> str:
        return join(self.root, "runs", self.stamp)

    @property
    def plan(self) -> str:
        return join(self.folder, "plan.json")

    @property
    def victims(self) -> str:
        return join(self.folder, "victims")

    @property
    def walked(self) -> str:
        return join(self.folder, "walked")

    @property
    def searched(self) -> str:
        return join(self.folder, "searched")

    @property
    def events(self) -> str:
        return join(self.folder, "events")

    @property
    def outcomes(self) -> str:
        return join(self.folder, "outcomes")


def notes_folder(location: str) -> str:
    """Returns the folder in which a commit of several requests notes how far it came. It is always with the table,
    wherever records are kept, so that each process that works on the table finds the notes.
    """
    return join(location, FOLDER, "commits")


RECORDS = "firnline.records"
"""The table property that says where the records of its runs are."""


def records_root(location: str, uuid: str, records: str | None) -> str:
    """Returns the folder of the records of a table's runs: in the table's own folder, or one for each table in
    `records`.
    """
    return join(location, FOLDER) if records is None else join(records, uuid)


def clock_folder(root: str) -> str:
    """Returns the folder for objects that lie there for a moment, written only so that the store dates them."""
    return join(root, "clock")
