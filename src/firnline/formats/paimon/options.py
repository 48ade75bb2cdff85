"""Changing a table's own options: Paimon does it with a new schema, which every writer reads before its next commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firnline.foreign import json_of
from firnline.formats.paimon import fields, names
from firnline.formats.paimon.branches import Branch, branches_of
from firnline.formats.paimon.folder import Files
from firnline.model.locations import join

_NOTES = "firnline."
COLLECT = "gc.enabled"
"""A word against any removal. Paimon has none, so it is a note among firnline's own."""

BEFORE_HOLD = "firnline.paimon.before-hold"
"""What the options of each branch said before a hold on the table: null where they said nothing."""

Before = dict[str, dict[str, str | None]]


def is_note(name: str) -> bool:
    """Tells whether a property is firnline's own; all others are the table's options."""
    return name == COLLECT or name.startswith(_NOTES)


def before_hold(properties: Mapping[str, str], location: str) -> Before:
    """Returns what a hold on the table wrote over, by branch and option; nothing where there is no such hold."""
    where = join(location, names.PROPERTIES)
    said = fields.parse(properties.get(BEFORE_HOLD, "{}"), where)
    if not all(isinstance(each, dict) for each in said.values()):
        raise fields.damaged(where, f"{BEFORE_HOLD} is {properties[BEFORE_HOLD]!r}")
    return {branch: dict(options) for branch, options in said.items()}


def as_before(branch: Branch, before: Before) -> dict[str, str]:
    """Returns the options of a branch without what a hold on the table wrote over them."""
    options = {**branch.schema.options, **before.get(branch.name, {})}
    return {name: value for name, value in options.items() if value is not None}


def new_schemas(files: Files, location: str, wanted: Mapping[str, Mapping[str, str]], now_ms: int) -> dict[str, str]:
    """Returns a new schema file for each branch whose options are not yet as wanted. Unknown fields survive."""
    found: dict[str, str] = {}
    for branch in branches_of(files, location).values():
        options = wanted[branch.name]
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
