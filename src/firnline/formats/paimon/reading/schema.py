"""What a table's schema says that its snapshots do not: partition keys with their types, options, and what to keep."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from firnline.errors import UnsupportedFormat
from firnline.formats.paimon import names
from firnline.formats.paimon.reading import fields
from firnline.formats.paimon.reading.folder import Files
from firnline.model.locations import identity, join, stem_of
from firnline.model.times import HOUR_MS
from firnline.policy.native import LARGEST, Range
from firnline.ports.stores import Read

SCHEMA_VERSIONS = (1, 2, 3)
_TYPE = re.compile(r"([A-Z]+(?: WITH LOCAL TIME ZONE)?)(?:\(([0-9]+)(?:, ?([0-9]+))?\))?( WITH LOCAL TIME ZONE)?")


@dataclass(frozen=True, slots=True)
class Type:
    """A type by its name, with what stands in its brackets."""

    name: str
    first: int | None = None
    second: int | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as far as files are concerned."""

    number: int
    partition: tuple[tuple[str, Type], ...]
    options: Mapping[str, str]
    where: str
    time_ms: int = 0


def parse_schema(text: str, where: str) -> Schema:
    """Returns the schema. Raises UnsupportedFormat for a version that is not known."""
    document = fields.parse(text, where)
    version = document.get("version", 1)
    if version not in SCHEMA_VERSIONS or isinstance(version, bool):
        raise UnsupportedFormat(f"schema version {version!r} is not understood: {where}", hint="nothing was changed")
    keys = document.get("partitionKeys") or []
    columns = document.get("fields")
    if not isinstance(columns, list) or not all(isinstance(each, dict) for each in columns):
        raise fields.damaged(where, "fields is not a list of objects")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise fields.damaged(where, "partitionKeys is not a list of names")
    types = {str(each.get("name")): each.get("type") for each in columns}
    partition = tuple((key, parse_type(types.get(key), key, where)) for key in keys)
    number, options = fields.whole(document, "id", where), fields.texts(document, "options", where)
    return Schema(number, partition, options, where, fields.whole_or_none(document, "timeMillis", where) or 0)


def parse_type(said: object, key: str, where: str) -> Type:
    if not isinstance(said, str):
        raise fields.damaged(where, f"the partition key {key} has the type {said!r}")
    match = _TYPE.fullmatch(said.strip().upper().removesuffix(" NOT NULL").strip())
    if match is None:
        raise UnsupportedFormat(f"{where}: the partition key {key} has the type {said!r}", hint="nothing was changed")
    numbers = [None if each is None else int(each) for each in (match[2], match[3])]
    return Type(match[1].removesuffix(" WITH LOCAL TIME ZONE"), *numbers)


def schemas_of(files: Files, branch: str, location: str) -> dict[int, Schema]:
    """Returns all schemas of a branch, by number."""
    found = schema_paths(files, branch)
    return {number: parse_schema(files[path], join(location, path)) for number, path in found.items()}


def latest_schema(files: Files, branch: str, location: str) -> Schema:
    """Returns the schema that a branch's writers use now: the one with the highest number."""
    found = schema_paths(files, branch)
    if not found:
        raise fields.damaged(join(location, f"{names.branch_folder(branch)}schema"), "the branch has no schema")
    path = found[max(found)]
    schema = parse_schema(files[path], join(location, path))
    if schema.number != max(found):
        raise fields.damaged(schema.where, f"it says that its id is {schema.number}")
    return schema


def schema_paths(files: Files, branch: str) -> dict[int, str]:
    """Returns the path of each schema of a branch below the table's folder, by number."""
    folder = names.branch_folder(branch)
    known = {path: names.numbered(path.removeprefix(folder)) for path in files if path.startswith(folder)}
    return {each[1]: path for path, each in known.items() if each and each[0] == "schema"}


def stored_schema(store: Read, location: str) -> Schema:
    """Returns the main branch's schema as the store has it now: for who has nothing but the place of a manifest."""
    main = _stored_in_main(store, location)
    return read_schema(store, main[max(main)])


def stored_schemas(store: Read, location: str) -> list[dict[int, str]]:
    """Returns the key of each schema that the store has now, by number: one mapping for each branch, the main branch's
    first. Raises UnreadableMetadata if the main branch has no schema.
    """
    return [_stored_in_main(store, location), *_stored(store, location, names.BRANCHES).values()]


def _stored_in_main(store: Read, location: str) -> dict[int, str]:
    main = _stored(store, location, "schema").get(names.MAIN)
    if main is None:
        raise fields.damaged(join(location, "schema"), "the table has no schema")
    return main


def read_schema(store: Read, key: str) -> Schema:
    return parse_schema(store.get(key).decode("utf-8", "replace"), key)


def _stored(store: Read, location: str, folder: str) -> dict[str, dict[int, str]]:
    """Returns the key of each schema below a folder of the table's, by branch and number."""
    found: dict[str, dict[int, str]] = {}
    for each in store.list(join(location, folder)):
        branch, below = names.split_branch(identity(each.key).removeprefix(stem_of(location)))
        known = names.numbered(below)
        if known is not None and known[0] == "schema":
            found.setdefault(branch, {})[known[1]] = each.key
    return dict(sorted(found.items()))


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
