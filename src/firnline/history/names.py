"""Where a table's history lies and who points at it.

    LOCATION/_firnline/history/TABLE-UUID/expired-snapshots-RANDOM.json   a plain JSON list: what the pointer names
                                          segment-DIGEST.json             older parts, plain JSON lists too
                                          index-RANDOM.json               names the segments, where there are any

The folder carries the table's uuid: a pointer that was copied with another table's properties is noticed by its path.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from firnline.model.locations import identity, join
from firnline.ports.discard import OwnName
from firnline.ports.formats import Amendment, State, UndoWindow

PATH = "firnline.expired-snapshots-path"
"""The table property that names the list. A property, because other writers drop top-level fields they do not know."""

INDEX = "firnline.expired-snapshots-index"
"""The table property that names the index of older parts; absent while one list holds everything."""

_HISTORY = "_firnline/history"
_UNSAFE = re.compile(r"[^0-9A-Za-z-]")


@dataclass(frozen=True, slots=True)
class HistoryPointer:
    """What the table says: the newest list, and the index of what is older."""

    path: str
    index: str | None = None

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    def amendment(self, state: State) -> Amendment:
        """Returns what has to be written for the table to say this.

        The proposal's own field is written only where the whole document goes through: a server that applies updates
        has no update for it.
        """
        whole = state.capabilities.undo is UndoWindow.AFTER_COMMIT
        index = {} if self.index is None else {INDEX: self.index}
        gone = frozenset({INDEX} & set(state.properties)) if self.index is None else frozenset()
        return Amendment(
            properties={PATH: self.path, **index}, properties_gone=gone, expired_path=self.path if whole else None
        )


def pointer_of(state: State) -> HistoryPointer | None:
    path = state.properties.get(PATH)
    return HistoryPointer(path, state.properties.get(INDEX)) if path else None


def home_of(state: State) -> str:
    """Returns the folder that all of this table's history lies in."""
    return join(state.location, _HISTORY)


def folder_of(state: State, generation: str = "") -> str:
    """Returns the folder for new files of this table's history; each `generation` after the first has its own."""
    table = "no-uuid" if state.uuid.startswith("no uuid") else _UNSAFE.sub("-", state.uuid)
    return join(home_of(state), f"{table}.{generation}" if generation else table)


def is_of_table(state: State, path: str) -> bool:
    """Tells whether a file of a history was written for this very table, wherever the table lay then."""
    folder = identity(path).rpartition("/")[0]
    above, _, name = folder.rpartition("/")
    own = folder_of(state).rpartition("/")[2]
    return above.endswith(f"/{_HISTORY}") and name.partition(".")[0] == own and is_own_name(path.rpartition("/")[2])


def is_own_name(name: str) -> bool:
    return OwnName.HISTORY.names(name)


def new_list_name() -> str:
    return f"expired-snapshots-{uuid.uuid4()}.json"


def new_index_name() -> str:
    return f"index-{uuid.uuid4()}.json"


def segment_name(digest: str) -> str:
    """Returns a name that follows from the bytes: a lost race that comes to the same segment writes it once."""
    return f"segment-{digest}.json"
