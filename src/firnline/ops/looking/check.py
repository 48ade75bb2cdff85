"""Checking a table: every file that each of its snapshots needs exists, with its size, readers can go by them,
and the times of snapshots can be right.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

from firnline.model.files import FileKind, Root
from firnline.ops.reachability.pointed import pointed_versions
from firnline.ops.runs.presence import FileFault, Presence, listed_beside, look
from firnline.pointers.document import PUBLISH_AGAIN
from firnline.ports.abilities import ChecksClocks, KeepsLogs, LeavesHints, NamesDefinitions
from firnline.ports.catalogs import TableSource
from firnline.ports.engines import ChooseEngine, Territory
from firnline.ports.formats import State
from firnline.ports.listings import ListRanges
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
        return {
            "table": self.table,
            "sound": self.sound,
            "snapshots": self.snapshots,
            "files": self.presence.looked_at,
            "bytes": self.presence.bytes,
            "faults": self.presence.faults,
            "listed": [each.to_json() for each in self.presence.listed],
        }

    def __str__(self) -> str:
        from firnline.ops.looking.pages import check_page

        return check_page(self).to_text()

    def _repr_html_(self) -> str:
        from firnline.ops.html.check import check_html

        return check_html(self)


def check(source: TableSource, store: Read, choose: ChooseEngine, ranges: ListRanges | None) -> Checked:
    """Returns what is missing, of files and of what they are read with, what leads readers astray, which transaction
    logs are damaged, and which snapshots have a time that cannot be right. `ranges` lists the store, None where it
    cannot be listed.

    Raises UnreadableMetadata where a list or manifest itself cannot be read.
    """
    state = source.load()
    roots = (Root(file, True, owner) for owner, file in source.format.roots(state))
    engine = choose(state, source.format, "auto")
    with closing(engine.survey(roots, source.format.expand, Territory(None))) as survey:
        listing = listed_beside(source.format, state, ranges, engine, survey)
        presence = look(engine, survey, store, listing=listing)
    also = [*_astray(source, state), *_ill_pointed(source, state), *_undefined(source, state)]
    also += [*_spoiled(source, state), *_wrongly_dated(source, state)]
    return Checked(state.table, len(state.graph), presence.and_also(also))


def _astray(source: TableSource, state: State) -> list[FileFault]:
    table_format = source.format
    found = table_format.misleading(state) if isinstance(table_format, LeavesHints) else ()
    return [FileFault(path, "hint", problem) for path, problem in found]


def _ill_pointed(source: TableSource, state: State) -> list[FileFault]:
    """Returns the pointers whose readers find nothing, or something else than they were told."""
    found = [each for each in pointed_versions(source.format, state) if each.trouble]
    return [FileFault(each.pointer.key, "pointer", each.trouble, PUBLISH_AGAIN) for each in found]


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


def _spoiled(source: TableSource, state: State) -> list[FileFault]:
    table_format = source.format
    found = table_format.unreadable_logs(state) if isinstance(table_format, KeepsLogs) else ()
    return [FileFault(path, FileKind.TRANSACTION_LOG.value, problem) for path, problem in found]


def _wrongly_dated(source: TableSource, state: State) -> list[FileFault]:
    table_format = source.format
    found = table_format.clock_faults(state) if isinstance(table_format, ChecksClocks) else ()
    return [FileFault(each.where, "clock", each.problem, each.hint) for each in found]
