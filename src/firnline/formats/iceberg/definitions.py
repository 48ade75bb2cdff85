"""The schemas and partition specs that snapshots were written with: which are needed, which are
gone, which are unused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import ObjectNotFound, RefusedForSafety, UnreadableMetadata
from firnline.formats.avro import CorruptAvro, decode
from firnline.formats.iceberg.document import Document
from firnline.ports.abilities import Undefined
from firnline.ports.stores import Get

SCHEMAS, SPECS = "schemas", "partition-specs"
ID_OF = {SCHEMAS: "schema-id", SPECS: "spec-id"}
_WORDS = {SCHEMAS: "schema", SPECS: "partition spec"}
IN_USE = "in-use"
"""What of a removal tells how its snapshots are read: other engines drop definitions that no snapshot in the table
needs, and take those of a run that can still be undone for such.
"""

_THREADS = 8
_SPEC = {"partition_spec_id": pa.int64()}
_FIRST_PARTITION_ID = 1000

Entry = Mapping[str, Any]
Need = tuple[str, str, int]
"""A snapshot, a list of definitions, and the id of one in it."""


def in_use(document: Document, snapshots: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Returns the definitions that snapshots of the document may have been written with. Opens nothing: only their
    manifest lists say which specs they need, so all of these are taken.
    """
    schemas = {each.get("schema-id") for each in snapshots}
    kept = [each for each in document.get(SCHEMAS) or () if each.get("schema-id") in schemas]
    return {SCHEMAS: kept, SPECS: list(document.get(SPECS) or ())}


def undefined_in(document: Document, where: str, store: Get) -> Iterator[Undefined]:
    """Yields what snapshots of the document, which lies at `where`, were written with that is not in it. Reads every
    manifest list.
    """
    for snapshot, name, number in _needs(document.get("snapshots") or (), store):
        if not _has(document, name, number):
            yield Undefined(snapshot, f"{_WORDS[name]} {number}", where)


def with_definitions(document: Document, removal: Mapping[str, Any], store: Get) -> dict[str, Any]:
    """Returns the document with all that the snapshots of a removal were written with: they are in it already.

    Raises RefusedForSafety where one is gone and cannot come back: nobody noted it, or its id means something else now.
    """
    noted = removal.get(IN_USE) or {}
    edited = dict(document)
    needs = (
        _schemas_of(removal["snapshots"]) if _still_has_specs(edited, noted) else _needs(removal["snapshots"], store)
    )
    for snapshot, name, number in needs:
        definition = _by_id(noted.get(name) or (), name).get(number)
        if definition is not None:
            refuse_other_meaning(edited, name, definition)
        if _has(edited, name, number):
            continue
        if definition is None:
            raise RefusedForSafety(
                f"snapshot {snapshot} was written with {_WORDS[name]} {number}, which the table has no more",
                hint="another engine cleaned the metadata up; nothing was changed",
            )
        edited[name] = [*(edited.get(name) or ()), definition]
    return edited


def refuse_other_meaning(document: Document, name: str, definition: Entry) -> None:
    """Raises RefusedForSafety where an id means something else by now: writers number on from the largest."""
    number = definition[ID_OF[name]]
    now = _by_id(document.get(name) or (), name).get(number, definition)
    if _meaning(name, now) != _meaning(name, definition):
        raise RefusedForSafety(
            f"the {ID_OF[name]} {number} means something else now than in the snapshots that would come back",
            hint="they can be read from the metadata before the run, not put back beside what came since",
        )


def refuse_lost_sources(edited: Document, before: Document) -> None:
    """Raises RefusedForSafety where a spec would come back to a schema without its columns: Iceberg binds every spec of
    a table to its current schema.
    """
    present, columns = _by_id(before.get(SPECS) or (), SPECS), _columns(edited)
    for number, spec in _by_id(edited.get(SPECS) or (), SPECS).items():
        lost = {source for field in spec.get("fields") or () for source in _sources(field)} - columns
        if number not in present and lost:
            raise RefusedForSafety(
                f"{_WORDS[SPECS]} {number} divides by column {min(lost)}, which the table has no more",
                hint="with it back no engine could read the table; nothing was changed",
            )


def specs_in(store: Get, manifest_list: str) -> set[int]:
    """Returns the specs of a list's manifests. Raises UnreadableMetadata where it cannot be read."""
    try:
        column = decode(store.get(manifest_list), _SPEC).batch.column("partition_spec_id")
    except (ObjectNotFound, CorruptAvro) as damage:
        raise UnreadableMetadata(
            f"manifest-list cannot be read: {manifest_list}", hint="nothing was changed"
        ) from damage
    return set(pc.unique(pc.fill_null(column, 0)).to_pylist())


def specs_of(store: Get, manifest_lists: Iterable[str]) -> dict[str, set[int]]:
    """Returns the specs of each list's manifests."""
    keys = sorted(set(manifest_lists))
    with ThreadPoolExecutor(_THREADS) as pool:
        return dict(zip(keys, pool.map(lambda key: specs_in(store, key), keys), strict=True))


def _needs(snapshots: Iterable[Entry], store: Get) -> Iterator[Need]:
    """Yields what each snapshot was written with. One of the first version that names its manifests itself says only
    in each of them which spec they have; tables of that time have one.
    """
    every = list(snapshots)
    yield from _schemas_of(every)
    lists = [each["manifest-list"] for each in every if each.get("manifest-list") is not None]
    specs = specs_of(store, lists)
    for each in every:
        for number in sorted(specs.get(each.get("manifest-list") or "", ())):
            yield str(each["snapshot-id"]), SPECS, number


def _schemas_of(snapshots: Iterable[Entry]) -> Iterator[Need]:
    said = ((str(each["snapshot-id"]), each.get("schema-id")) for each in snapshots)
    return ((snapshot, SCHEMAS, number) for snapshot, number in said if number is not None)


def _still_has_specs(document: Document, noted: Mapping[str, Any]) -> bool:
    """Tells whether all specs of that time are in the document as they were: then no list need be opened."""
    present = _by_id(document.get(SPECS) or (), SPECS)
    pairs = ((present.get(each.get(ID_OF[SPECS])), each) for each in noted.get(SPECS) or ())
    same = [now is not None and _meaning(SPECS, now) == _meaning(SPECS, then) for now, then in pairs]
    return bool(same) and all(same)


def _has(document: Document, name: str, number: int) -> bool:
    """Tells whether the document has a definition. One of the first version may have no list, and one of each."""
    return document.get(name) is None or number in _by_id(document[name], name)


def _by_id(definitions: Iterable[Entry], name: str) -> dict[Any, Entry]:
    return {each.get(ID_OF[name]): each for each in definitions}


def _meaning(name: str, definition: Entry) -> Any:
    """Returns what of a definition readers go by: engines write the same one in different words."""
    if name == SCHEMAS:
        return _type_meaning({"type": "struct", "fields": definition.get("fields") or ()})
    fields = enumerate(definition.get("fields") or (), start=_FIRST_PARTITION_ID)
    return [
        (_sources(each), each.get("field-id", place), each.get("name"), each.get("transform")) for place, each in fields
    ]


def _type_meaning(said: Any) -> Any:
    """Returns a type as nested values: ids, names and types, without what is said about them."""
    if not isinstance(said, dict):
        return str(said).replace(" ", "")
    kept = {key: value for key, value in said.items() if key.endswith(("-id", "required"))}
    inner = {key: _type_meaning(said[key]) for key in ("element", "key", "value") if key in said}
    fields = [(each.get("id"), each.get("name"), bool(each.get("required")), _type_meaning(each.get("type")))
              for each in said.get("fields") or ()]  # fmt: skip
    return said.get("type"), kept, inner, fields


def _sources(field: Entry) -> tuple[int, ...]:
    """Returns the columns that a field of a spec is made of; the third version may name several."""
    return tuple(field.get("source-ids") or (field.get("source-id"),))


def _columns(document: Document) -> set[Any]:
    """Returns the ids of all columns of the current schema, nested ones too."""
    current = _by_id(document.get(SCHEMAS) or (), SCHEMAS).get(document.get("current-schema-id"))
    return set(_ids_in({"fields": (current or document.get("schema") or {}).get("fields") or ()}))


def _ids_in(said: Any) -> Iterator[Any]:
    if not isinstance(said, dict):
        return
    for field in said.get("fields") or ():
        yield field.get("id")
        yield from _ids_in(field.get("type"))
    for key in ("element", "key", "value"):
        if f"{key}-id" in said:
            yield said[f"{key}-id"]
            yield from _ids_in(said.get(key))


def without_unused(document: dict[str, Any], store: Get) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Returns the document without unused schemas and specs, and what was taken out.

    Reads the manifest list of every snapshot that the document retains. Where anything leaves a doubt, such as a
    snapshot that does not say its schema, all are kept.
    """
    kept_schemas, kept_specs = _schemas_needed(document), _specs_needed(document, store)
    removal = {
        SCHEMAS: _unneeded(document, SCHEMAS, kept_schemas),
        SPECS: _unneeded(document, SPECS, kept_specs),
    }
    edited = {**document, **{name: _rest(document, name, gone) for name, gone in removal.items() if gone}}
    return edited, {name: gone for name, gone in removal.items() if gone}


def _schemas_needed(document: Document) -> set[Any] | None:
    """Returns the ids in use; None where a snapshot does not tell."""
    ids = {snapshot.get("schema-id") for snapshot in document.get("snapshots") or ()}
    return None if None in ids else ids | {document.get("current-schema-id")}


def _specs_needed(document: Document, store: Get) -> set[Any] | None:
    snapshots = document.get("snapshots") or ()
    lists = {snapshot.get("manifest-list") for snapshot in snapshots}
    if None in lists:
        return None  # manifests named inline: only opening each of them would tell
    return {document.get("default-spec-id")}.union(*specs_of(store, lists).values())


def _unneeded(document: Document, name: str, needed: set[Any] | None) -> list[Any]:
    return [] if needed is None else [each for each in document.get(name) or () if each.get(ID_OF[name]) not in needed]


def _rest(document: Document, name: str, gone: list[Any]) -> list[Any]:
    return [each for each in document[name] if each not in gone]
