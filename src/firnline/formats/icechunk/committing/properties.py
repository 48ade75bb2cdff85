"""What firnline notes about a repository: one object in its own folder, where no collection of Icechunk's looks."""

from __future__ import annotations

import json
from collections.abc import Mapping

from firnline.errors import AlreadyExists, ObjectNotFound, UnreadableMetadata
from firnline.foreign import json_bytes
from firnline.formats.damage import REPAIR
from firnline.journal.layout import PROPERTIES
from firnline.model.locations import join
from firnline.ports.stores import Get, ReadWrite


def read_properties(store: Get, location: str) -> dict[str, str]:
    """Returns the notes; none where nothing was ever noted. Raises UnreadableMetadata where they are damaged: a hold
    that nobody can read must not look like none.
    """
    key = join(location, PROPERTIES)
    try:
        text = store.get(key)
    except ObjectNotFound:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as damage:
        raise _damaged(key, str(damage)) from damage
    if not is_notes(found):
        raise _damaged(key, "it is not an object of texts")
    return dict(found)


def write_properties(store: ReadWrite, location: str, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Writes the notes over what they said before. Returns False where they say something else by now, or were written
    by another at the same time: a write over an object has no condition here, so a lease must keep others out.
    """
    present = read_properties(store, location)
    if present != after:
        if present != before:
            return False
        _put(store, join(location, PROPERTIES), json_bytes(dict(after), sort_keys=True, indent=1), is_new=not before)
    return read_properties(store, location) == after


def _put(store: ReadWrite, key: str, data: bytes, is_new: bool) -> None:
    """Writes the object; the first one only if no other came between."""
    if not is_new:
        store.put(key, data)
        return
    try:
        store.put_if_absent(key, data)
    except AlreadyExists:
        if json.loads(store.get(key)) == {}:  # notes that were all taken back: nothing here deletes the object
            store.put(key, data)


def is_notes(value: object) -> bool:
    """Tells whether a value is what notes can be: texts by name."""
    return isinstance(value, dict) and all(isinstance(each, str) for pair in value.items() for each in pair)


def _damaged(key: str, why: str) -> UnreadableMetadata:
    return UnreadableMetadata(f"firnline's own note is damaged: {key}: {why}", hint=REPAIR)
