"""Paimon's own options for what to keep, as the ranges that firnline judges by."""

from __future__ import annotations

from collections.abc import Mapping

from firnline.formats.paimon import fields
from firnline.formats.paimon.schema import Schema
from firnline.model.times import HOUR_MS
from firnline.policy.ranges import LARGEST, Range

MEANING = "firnline.paimon.time-retained"
"""`next` (Paimon 2: a snapshot's age is counted from when the next one came) or `own` (up to 1.4)."""

CHANGELOG_OPTIONS = ("changelog.num-retained.min", "changelog.num-retained.max", "changelog.time-retained")
NOTED = "firnline.paimon."
"""Before the name of an option: what it said before the writers' own expiry was turned off."""

_COUNTS = (("num-retained.min", 10), ("num-retained.max", LARGEST))
_MEANINGS = {"next": True, "own": False}


def range_of(schema: Schema, properties: Mapping[str, str]) -> Range:
    """Returns what the branch's writers keep. Raises where the options contradict each other, as Paimon does."""
    options, where = schema.options, schema.where
    least = fields.count(options, "snapshot.num-retained.min", 10, where)
    most = fields.count(options, "snapshot.num-retained.max", LARGEST, where)
    if not 1 <= least <= most:
        raise fields.damaged(where, f"snapshot.num-retained.min is {least} and .max is {most}")
    meaning = properties.get(MEANING, "next")
    if meaning not in _MEANINGS:
        raise fields.damaged(where, f"{MEANING} is {meaning!r}, not one of: {', '.join(_MEANINGS)}")
    limit = fields.count(options, "snapshot.expire.limit", 50, where)
    return Range(least, most, _age(options, "snapshot.time-retained", where) or HOUR_MS, limit, _MEANINGS[meaning])


def changelog_range(schema: Schema, properties: Mapping[str, str]) -> Range:
    """Returns what the branch keeps of changelogs that outlived their snapshots: as of snapshots, unless it is told
    otherwise. A changelog's age counts from its own time, in every version of Paimon.
    """
    noted = {name: properties[NOTED + name] for name in CHANGELOG_OPTIONS if NOTED + name in properties}
    options, where = {**schema.options, **noted}, schema.where
    kept = [
        fields.count(options, f"changelog.{name}", fields.count(options, f"snapshot.{name}", default, where), where)
        for name, default in _COUNTS
    ]
    if not 1 <= kept[0] <= kept[1]:
        raise fields.damaged(where, f"changelog.num-retained.min is {kept[0]} and .max is {kept[1]}")
    own_age = _age(options, "snapshot.time-retained", where) or HOUR_MS
    limit = fields.count(options, "snapshot.expire.limit", 50, where)
    return Range(kept[0], kept[1], _age(options, "changelog.time-retained", where) or own_age, limit, by_next=False)


def is_decoupled(schema: Schema) -> bool:
    """Tells whether changelogs outlive their snapshots: where any option keeps more of them."""
    options, where = schema.options, schema.where
    for name, default in _COUNTS:
        own = fields.count(options, f"snapshot.{name}", default, where)
        if fields.count(options, f"changelog.{name}", own, where) > own:
            return True
    own_age = _age(options, "snapshot.time-retained", where) or HOUR_MS
    return (_age(options, "changelog.time-retained", where) or own_age) > own_age


def _age(options: Mapping[str, str], name: str, where: str) -> int | None:
    text = options.get(name)
    return None if text is None else fields.duration_ms(text, name, where)
