"""The metadata JSON as a document: decoded, checked for what firnline understands, otherwise left alone, and written
again.
"""

from __future__ import annotations

import gzip
import json
import re
import uuid
import zlib
from collections.abc import Mapping
from typing import Any

from firnline.errors import ObjectNotFound, UnreadableMetadata, UnsupportedFormat
from firnline.foreign import json_bytes
from firnline.formats.iceberg.fields import properties_of
from firnline.inflate import gunzipped
from firnline.model.locations import join
from firnline.ports.stores import Get

Document = Mapping[str, Any]

FORMAT_VERSIONS = (1, 2, 3)
LARGEST_DOCUMENT = 4 << 30
_GZIP_MAGIC = b"\x1f\x8b"
_HINT = "nothing was changed; restore the object or name another table"


def read_metadata(store: Get, location: str) -> bytes:
    """Returns the metadata at `location` as it lies there."""
    try:
        return store.get(location)
    except ObjectNotFound as missing:
        raise UnreadableMetadata(f"metadata is missing: {location}", hint=_HINT) from missing


def document_in(data: bytes, location: str) -> Document:
    """Returns the document in `data`, plain or gzip. Raises where anything about it is not understood."""
    document = parse_document(data, location)
    check_understood(document, location)
    return document


def parse_document(data: bytes, location: str) -> Document:
    """Returns the JSON object in `data`; compression is told by the bytes, not by the name."""
    try:
        text = gunzipped(data, LARGEST_DOCUMENT) if data.startswith(_GZIP_MAGIC) else data
        document = json.loads(text)
    except (ValueError, zlib.error, RecursionError) as damage:
        raise UnreadableMetadata(f"metadata is damaged: {location}: {damage}", hint=_HINT) from damage
    except MemoryError:
        raise UnreadableMetadata(
            f"metadata does not fit into memory: {location}: {len(data):,} bytes as it lies there", hint=_HINT
        ) from None
    if not isinstance(document, dict):
        raise UnreadableMetadata(f"metadata is not a JSON object: {location}", hint=_HINT)
    return document


def check_understood(document: Document, location: str) -> None:
    """Raises UnsupportedFormat unless this version of firnline understands the table."""
    version = document.get("format-version")
    if version not in FORMAT_VERSIONS or not isinstance(version, int) or isinstance(version, bool):
        raise UnsupportedFormat(
            f"format version {version!r} is not understood: {location}",
            hint=f"firnline reads Iceberg versions {', '.join(map(str, FORMAT_VERSIONS))}; nothing was changed",
        )
    if _is_encrypted(document):
        raise UnsupportedFormat(
            f"the table is encrypted and its keys are not available: {location}",
            hint="without the keys nobody can tell which files are needed; nothing was changed",
        )


def _is_encrypted(document: Document) -> bool:
    """Tells it from a document whose fields may still have any shape: who reads them next says what is wrong."""
    properties, snapshots = document.get("properties"), document.get("snapshots")
    return bool(
        document.get("encryption-keys")
        or (isinstance(properties, dict) and "encryption.key-id" in properties)
        or any("key-id" in s for s in (snapshots if isinstance(snapshots, list) else ()) if isinstance(s, dict))
    )


_VERSION = re.compile(r"(?:v(\d+)|(\d+)-)[^/]*$")


def document_bytes(document: Document) -> bytes:
    text = json_bytes(document, separators=(",", ":"))
    return gzip.compress(text, mtime=0) if is_compressed(document) else text


def is_compressed(document: Document) -> bool:
    codec = properties_of(document).get("write.metadata.compression-codec", "none").lower()
    if codec not in ("none", "gzip"):
        raise UnsupportedFormat(f"metadata compression {codec!r} is not understood", hint="nothing was changed")
    return codec == "gzip"


def metadata_folder(document: Document) -> str:
    return properties_of(document).get("write.metadata.path") or join(document["location"], "metadata")


def successor_name(document: Document, base_location: str) -> str:
    """Returns a new name for the metadata that follows; never one that was used before."""
    match = _VERSION.search(base_location.rsplit("/", 1)[-1])
    version = int(match[1] or match[2]) + 1 if match else 0
    ending = ".gz.metadata.json" if is_compressed(document) else ".metadata.json"
    return join(metadata_folder(document), f"{version:05d}-{uuid.uuid4()}{ending}")
