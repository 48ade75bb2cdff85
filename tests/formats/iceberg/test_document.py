"""The metadata document: read plain or compressed, refused where anything about it is not understood."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from firnline.errors import UnreadableMetadata, UnsupportedFormat
from firnline.formats.iceberg import document as reading
from firnline.formats.iceberg.document import check_understood, document_in, parse_document, read_metadata
from firnline.formats.iceberg.table import IcebergFormat
from firnline.stores.objects import ObjectStores
from firnline.testing.manifests import AvroLayout
from firnline.testing.tables import SmallTable

HERE = "memory://documents/v1.metadata.json"


def understood(**fields: Any) -> None:
    check_understood({"format-version": 2, **fields}, HERE)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_document_is_read_plain_and_compressed(version: int, compressed: bool) -> None:
    store = ObjectStores()
    table = SmallTable(store, f"memory://documents/{version}-{compressed}/t", AvroLayout(version))
    snapshot = table.append()
    location = table.publish(compressed=compressed)
    document = document_in(read_metadata(store, location), location)
    assert document["format-version"] == version
    assert document["current-snapshot-id"] == snapshot, "an id beyond 2**53 is still exact"


def test_compression_is_told_by_the_bytes_and_not_by_the_name() -> None:
    assert parse_document(gzip.compress(b"{}"), HERE) == {}
    assert parse_document(b"{}", HERE + ".gz") == {}


DAMAGED = {
    "empty": b"",
    "cut": b'{"format-version": 2, "snap',
    "not JSON": b"<html>",
    "not UTF-8": b'{"a": "\xff"}',
    "a list": b"[]",
    "a number": b"7",
    "gzip that was cut": gzip.compress(b"{}" * 500)[:-9],
    "gzip of nothing much": gzip.compress(b"nothing much"),
    "gzip's first bytes": b"\x1f\x8b",
    "too deep": b"[" * 200_000,
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=list(DAMAGED))
def test_a_damaged_document_is_named(data: bytes) -> None:
    with pytest.raises(UnreadableMetadata) as damage:
        parse_document(data, HERE)
    assert HERE in damage.value.message
    assert damage.value.hint


def test_a_missing_document_is_named() -> None:
    with pytest.raises(UnreadableMetadata, match="missing: memory://documents/none"):
        read_metadata(ObjectStores(), "memory://documents/none")


def test_a_compressed_document_is_inflated_no_further_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST_DOCUMENT", 1_000)
    with pytest.raises(UnreadableMetadata, match="inflate to more than"):
        parse_document(gzip.compress(b" " * 1_001 + b"{}"), HERE)
    assert parse_document(gzip.compress(b" " * 900 + b"{}"), HERE) == {}


@pytest.mark.parametrize("version", [0, 4, 5, -1, "2", 2.0, 2.5, None, [2], True])
def test_an_unknown_format_version_is_refused(version: Any) -> None:
    with pytest.raises(UnsupportedFormat) as refused:
        check_understood({"format-version": version}, HERE)
    assert repr(version) in refused.value.message
    assert HERE in refused.value.message


@pytest.mark.parametrize(
    "fields",
    [
        {"encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "eA=="}]},
        {"properties": {"encryption.key-id": "k"}},
        {"snapshots": [{"snapshot-id": 1}, {"snapshot-id": 2, "key-id": "k"}]},
    ],
    ids=["keys", "property", "snapshot"],
)
def test_an_encrypted_table_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedFormat, match="encrypted"):
        understood(**fields)


@pytest.mark.parametrize("fields", [{}, {"encryption-keys": []}, {"properties": None}, {"snapshots": None}])
def test_a_table_without_keys_is_understood(fields: dict[str, Any]) -> None:
    understood(**fields)


@pytest.mark.parametrize("name", ["properties", "snapshots"])
@pytest.mark.parametrize("value", [5, "text", [5], True])
def test_a_field_of_the_wrong_shape_is_damage_and_nothing_worse(name: str, value: Any) -> None:
    store = ObjectStores()
    table = SmallTable(store, "memory://documents/shapes/t")
    table.append()
    location = table.publish(edit=lambda document: document.update({name: value}))
    with pytest.raises(UnreadableMetadata) as damage:
        IcebergFormat(store).load("t", location)
    assert name in damage.value.message


def test_a_document_is_kept_as_it_was_written() -> None:
    written = {"format-version": 2, "expired-snapshots-path": "x", "unknown": {"deep": [1, 2.5, None, "é"]}}
    assert parse_document(json.dumps(written).encode(), HERE) == written
