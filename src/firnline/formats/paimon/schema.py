"""What a table's schema says that its snapshots do not: partition keys with their types, and options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from firnline.errors import UnsupportedFormat
from firnline.formats.paimon import fields, names
from firnline.formats.paimon.folder import Files
from firnline.model.locations import identity, join, stem_of
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
    found = _numbered(files, branch)
    return {number: parse_schema(files[path], join(location, path)) for number, path in found.items()}


def latest_schema(files: Files, branch: str, location: str) -> Schema:
    """Returns the schema that a branch's writers use now: the one with the highest number."""
    found = _numbered(files, branch)
    if not found:
        raise fields.damaged(join(location, f"{names.branch_folder(branch)}schema"), "the branch has no schema")
    path = found[max(found)]
    schema = parse_schema(files[path], join(location, path))
    if schema.number != max(found):
        raise fields.damaged(schema.where, f"it says that its id is {schema.number}")
    return schema


def _numbered(files: Files, branch: str) -> dict[int, str]:
    folder = names.branch_folder(branch)
    known = {path: names.numbered(path.removeprefix(folder)) for path in files if path.startswith(folder)}
    return {each[1]: path for path, each in known.items() if each and each[0] == "schema"}


def stored_schema(store: Read, location: str) -> Schema:
    """Returns the main branch's schema as the store has it now: for who has nothing but the place of a manifest."""
    folder = join(location, "schema")
    found = _newest(store, location, folder)
    if names.MAIN not in found:
        raise fields.damaged(folder, "the table has no schema")
    return found[names.MAIN]


def stored_schemas(store: Read, location: str) -> list[Schema]:
    """Returns the schema of every branch as the store has it now, the main one's first."""
    branches = _newest(store, location, join(location, names.BRANCHES))
    return [stored_schema(store, location), *branches.values()]


def _newest(store: Read, location: str, folder: str) -> dict[str, Schema]:
    """Returns the newest schema of each branch that has any below a folder."""
    found: dict[str, dict[int, str]] = {}
    for each in store.list(folder):
        branch, below = names.split_branch(identity(each.key).removeprefix(stem_of(location)))
        known = names.numbered(below)
        if known is not None and known[0] == "schema":
            found.setdefault(branch, {})[known[1]] = each.key
    newest = {branch: numbers[max(numbers)] for branch, numbers in sorted(found.items())}
    return {branch: parse_schema(store.get(key).decode("utf-8", "replace"), key) for branch, key in newest.items()}
