"""Whose history a tier's table holds: it says so itself, for names can be given twice."""

from __future__ import annotations

from collections.abc import Mapping

ARCHIVE_OF = "firnline.archive-of"
"""The table property with the live table's uuid."""
ARCHIVE_IN = "firnline.archive-in"
"""The table property with the uuid of the tier's table itself. Engines that make a table like another one give it the
same properties, and a uuid of its own: such a one holds no history but its own.
"""


def is_archive(uuid: str, properties: Mapping[str, str]) -> bool:
    """Tells whether a table, of this uuid, is one of a tier."""
    return ARCHIVE_OF in properties and properties.get(ARCHIVE_IN, uuid) == uuid


def history_of(uuid: str, properties: Mapping[str, str]) -> str:
    """Returns the uuid of the live table whose history a table holds: its own, unless it is a tier's."""
    return properties[ARCHIVE_OF] if is_archive(uuid, properties) else uuid


def is_history_of(uuid: str, properties: Mapping[str, str], live: str) -> bool:
    """Tells whether a table, of this uuid, is one of a tier and holds the history of the live one with the other."""
    return is_archive(uuid, properties) and properties[ARCHIVE_OF] == live
