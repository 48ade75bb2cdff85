"""What firnline notes about a table that cannot be put among the table's own properties: an object beside its files."""

from __future__ import annotations

from collections.abc import Mapping

from firnline.history.names import INDEX, PATH
from firnline.journal.layout import FOLDER, RECORDS
from firnline.model.locations import join

_PLACES = (RECORDS, PATH, INDEX)
_HISTORY = "/history/"


def notes_here(noted: Mapping[str, str], location: str) -> dict[str, str]:
    """Returns the notes of the table in this folder. A place that they put into a table's own folder is one in this
    folder: the note may have been copied or moved with it, and what lies in the other folder is another table's.
    """
    return {**noted, **{name: _here(noted[name], location) for name in _PLACES if name in noted}}


def _here(noted: str, location: str) -> str:
    _, own, below = noted.rstrip("/").rpartition(f"/{FOLDER}")
    return join(location, FOLDER + below) if own and (not below or below.startswith(_HISTORY)) else noted
