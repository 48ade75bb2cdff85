"""What firnline notes about a commit of several requests, which can be cut in the middle: an object for each stage that
it reached, so that the process that comes next knows whether to carry it on.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from firnline.errors import AlreadyExists, ObjectNotFound
from firnline.journal.layout import notes_folder
from firnline.model.locations import join
from firnline.ports.discard import OwnName
from firnline.ports.stores import ReadWrite


class CommitStage(StrEnum):
    """How far a commit came. One that was begun ends as done or as given up."""

    BEGUN = "begun"
    DONE = "done"
    GIVEN_UP = "given-up"


@dataclass(frozen=True, slots=True)
class CommitNotes:
    """The notes of one commit to the table at `location`. Nothing but its own id names them: one that comes from a
    record goes through `is_commit` first, or it could name any object.
    """

    store: ReadWrite
    location: str
    commit: str

    def put(self, stage: CommitStage) -> None:
        """Notes a stage. Another process may have noted it too: both say the same."""
        with suppress(AlreadyExists):
            self.store.put_if_absent(self._key(stage), json.dumps({"commit": self.commit}).encode())

    def has(self, stage: CommitStage) -> bool:
        try:
            self.store.head(self._key(stage))
        except ObjectNotFound:
            return False
        return True

    def begun_ms(self) -> int:
        """Returns when the commit was begun, by the store's clock; 0 where nothing tells: all that is there came since
        then, for all that is known.
        """
        try:
            return self.store.head(self._key(CommitStage.BEGUN)).modified_ms or 0
        except ObjectNotFound:
            return 0

    def _key(self, stage: CommitStage) -> str:
        return join(notes_folder(self.location), f"{self.commit}.{stage}")


def is_commit(name: str) -> bool:
    """Tells whether a commit may be called so."""
    return OwnName.NOTE.names(f"{name}.{CommitStage.BEGUN}")
