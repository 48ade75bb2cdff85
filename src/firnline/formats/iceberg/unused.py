"""Schemas and partition specs that no retained snapshot needs. Found by reading, never by guessing."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import ObjectNotFound, UnreadableMetadata
from firnline.formats.avro import CorruptAvro, decode
from firnline.formats.iceberg.document import Document
from firnline.ports.stores import Get

_THREADS = 8
_SPEC = {"partition_spec_id": pa.int64()}


def without_unused(document: dict[str, Any], store: Get) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Returns the document without unused schemas and specs, and what was taken out.

    Reads the manifest list of every snapshot that the document retains. Where anything leaves a doubt, such as a
    snapshot that does not say its schema, all are kept.
    """
    kept_schemas, kept_specs = _schemas_needed(document), _specs_needed(document, store)
    removal = {
        "schemas": _unneeded(document, "schemas", "schema-id", kept_schemas),
        "partition-specs": _unneeded(document, "partition-specs", "spec-id", kept_specs),
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
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(lambda key: _specs_in(store, key), sorted(lists))
        return {document.get("default-spec-id")}.union(*found)


def _specs_in(store: Get, manifest_list: str) -> set[int]:
    try:
        column = decode(store.get(manifest_list), _SPEC).batch.column("partition_spec_id")
    except (ObjectNotFound, CorruptAvro) as damage:
        raise UnreadableMetadata(
            f"manifest-list cannot be read: {manifest_list}", hint="nothing was changed"
        ) from damage
    return set(pc.unique(pc.fill_null(column, 0)).to_pylist())


def _unneeded(document: Document, name: str, key: str, needed: set[Any] | None) -> list[Any]:
    return [] if needed is None else [each for each in document.get(name) or () if each.get(key) not in needed]


def _rest(document: Document, name: str, gone: list[Any]) -> list[Any]:
    return [each for each in document[name] if each not in gone]
