"""Changing a table's own options: Paimon does it with a new schema, which every writer reads before its next commit."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from firnline.foreign import json_of
from firnline.formats.paimon import fields, names
from firnline.formats.paimon.branches import branches_of
from firnline.formats.paimon.folder import Files
from firnline.model.locations import join

_NOTES = "firnline."
COLLECT = "gc.enabled"
"""A word against any removal. Paimon has none, so it is a note among firnline's own."""


def is_note(name: str) -> bool:
    """Tells whether a property is firnline's own; all others are the table's options."""
    return name == COLLECT or name.startswith(_NOTES)


def new_schemas(files: Files, location: str, written: Mapping[str, str], gone: Set[str], now_ms: int) -> dict[str, str]:
    """Returns a new schema file for each branch whose options are not yet so. Fields that nobody knows survive."""
    if not written and not gone:
        return {}
    found: dict[str, str] = {}
    for branch in branches_of(files, location).values():
        options = {name: value for name, value in {**branch.schema.options, **written}.items() if name not in gone}
        if options != branch.schema.options:
            folder, number = names.branch_folder(branch.name), branch.schema.number
            path = f"{folder}schema/schema-{number}"
            before = fields.parse(files[path], join(location, path))
            after = {**before, "id": number + 1, "options": options, "timeMillis": _after(before, now_ms)}
            found[f"{folder}schema/schema-{number + 1}"] = json_of(after, indent=2)
    return found


def _after(schema: Mapping[str, Any], now_ms: int) -> int:
    """Returns the time of the schema after this one: never before it, though its writer's clock may be ahead."""
    before = schema.get("timeMillis")
    return max(now_ms, before) if isinstance(before, int) else now_ms
