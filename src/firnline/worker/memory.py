"""What a worker remembers of tables from one start to the next: only when to look again, never what may go.

The file is a help: without it every table is looked at once more. What was begun is known by the records of runs.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from firnline.callers import in_callers_words
from firnline.own_files import own_cache, write_whole
from firnline.settings import find_config

VERSION = 1
_UNSAVED = "make room, or name another place with --memory: until then a new start looks at every table"


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is known of one table. Instants are of this machine's clock; 0 is never. `waits_ms`: how long after a look
    the next one comes; `begun_ms`: when a look last began, however it ended; `failures`: how often it failed since it
    last went well, `again_ms`: not before.
    """

    looked_ms: int = 0
    searched_ms: int = 0
    waits_ms: int = 0
    bytes_per_hour: float = 0.0
    failures: int = 0
    again_ms: int = 0
    begun_ms: int = 0


_TYPES = {each.name: float if each.name == "bytes_per_hour" else int for each in fields(Remembered)}


@dataclass
class Memory:
    """The tables that a worker knows, in a file of its own."""

    path: Path
    tables: dict[str, Remembered] = field(default_factory=dict)

    @staticmethod
    def load(path: Path) -> Memory:
        """Returns what was saved; nothing where there is no such file, or one that is not understood: of
        another version, too, whose words may mean something else.
        """
        found = Memory(path)
        try:
            said = json.loads(path.read_bytes())
            if said["version"] != VERSION:
                raise ValueError(f"it is of version {said['version']!r}, this firnline reads {VERSION}")
            found.tables = {name: _remembered(each) for name, each in said["tables"].items()}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as damage:
            logging.getLogger("firnline").warning("%s is not understood, every table is looked at: %s", path, damage)
        return found

    def save(self) -> None:
        """Writes it, whole or not at all. A disk that is full costs a look at each table after the next start."""
        data = json.dumps({"version": VERSION, "tables": {name: asdict(each) for name, each in self.tables.items()}})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, data.encode(), 0o600)
        except OSError as problem:
            said = (self.path, problem.strerror, in_callers_words(_UNSAVED))
            logging.getLogger("firnline").warning("%s cannot be written: %s; %s", *said)

    def of(self, table: str) -> Remembered:
        return self.tables.get(table, Remembered())

    def forget_others(self, tables: Set[str]) -> None:
        """Forgets tables that are in no catalog any more."""
        self.tables = {name: known for name, known in self.tables.items() if name in tables}


def _remembered(said: Mapping[str, Any]) -> Remembered:
    known: dict[str, Any] = {name: kind(said[name]) for name, kind in _TYPES.items() if name in said}
    return Remembered(**known)


def usual_memory(config: str | None) -> Path:
    """Returns the file in which a worker remembers if nothing else is said: one per configuration, by its place."""
    place = str(find_config(config) or "")
    return own_cache("worker") / f"memory-{sha256(os.path.abspath(place).encode()).hexdigest()[:16]}.json"
