"""Checking a table: every file that each of its snapshots needs exists, with its size, and readers can go by them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

from firnline.model.files import FileKind, Root
from firnline.ops.runs.presence import FileFault, Presence, look
from firnline.ports.abilities import LeavesHints, NamesDefinitions
from firnline.ports.catalogs import TableSource
from firnline.ports.engines import ChooseEngine, Territory
from firnline.ports.formats import State
from firnline.ports.stores import Read


@dataclass(frozen=True, slots=True)
class Checked:
    table: str
    snapshots: int
    presence: Presence

    @property
    def sound(self) -> bool:
        return self.presence.faults == 0

    def to_json(self) -> dict[str, Any]:
        listed = [{"path": each.path, "kind": each.kind, "problem": each.problem} for each in self.presence.listed]
        return {
            "table": self.table,
            "sound": self.sound,
            "snapshots": self.snapshots,
            "files": self.presence.looked_at,
            "bytes": self.presence.bytes,
            "faults": self.presence.faults,
            "listed": listed,
        }


def check(source: TableSource, store: Read, choose: ChooseEngine) -> Checked:
    """Returns what is missing, of files and of what they are read with, and what leads readers astray.

    Raises UnreadableMetadata where a list or manifest itself cannot be read.
    """
    state = source.load()
    roots = (Root(file, True, owner) for owner, file in source.format.roots(state))
    engine = choose(state, source.format, "auto")
    with closing(engine.survey(roots, source.format.expand, Territory(None))) as survey:
        presence = look(engine, survey, store)
    also = [*_astray(source, state), *_undefined(source, state)]
    return Checked(state.table, len(state.graph), presence.and_also(also))


def _astray(source: TableSource, state: State) -> list[FileFault]:
    table_format = source.format
    found = table_format.misleading(state) if isinstance(table_format, LeavesHints) else ()
    return [FileFault(path, "hint", problem) for path, problem in found]


def _undefined(source: TableSource, state: State) -> list[FileFault]:
    """Returns what the metadata itself lacks: files alone do not make a snapshot readable."""
    table_format = source.format
    if not isinstance(table_format, NamesDefinitions):
        return []
    return [
        FileFault(
            each.where, FileKind.METADATA.value, f"has no {each.what}, which snapshot {each.snapshot} was written with"
        )
        for each in table_format.undefined(state)
    ]
