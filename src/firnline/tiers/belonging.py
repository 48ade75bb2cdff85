"""Whose history a tier's table holds: it says so itself, for names can be given twice."""

from __future__ import annotations

from collections.abc import Mapping

ARCHIVE_OF = "firnline.archive-of"
"""The table property with the live table's uuid."""


def history_of(uuid: str, properties: Mapping[str, str]) -> str:
    """Returns the uuid of the live table whose history a table holds: its own, unless it is a tier's."""
    return properties.get(ARCHIVE_OF, uuid)


def is_history_of(properties: Mapping[str, str], uuid: str) -> bool:
    """Tells whether a table of a tier holds the history of the live table with this uuid."""
    return properties.get(ARCHIVE_OF) == uuid
