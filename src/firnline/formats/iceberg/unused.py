"""Schemas and partition specs that no retained snapshot needs. Found by reading, never by guessing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firnline.formats.iceberg.definitions import ID_OF, SCHEMAS, SPECS, specs_of
from firnline.formats.iceberg.document import Document
from firnline.ports.stores import Get


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
