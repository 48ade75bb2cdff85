"""A metadata document as bytes, compressed where the table asks for it, and its place in the table."""

from __future__ import annotations

import gzip
import re
import uuid

from firnline.errors import UnsupportedFormat
from firnline.foreign import json_bytes
from firnline.formats.iceberg.document import Document
from firnline.formats.iceberg.fields import properties_of
from firnline.model.locations import join

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
