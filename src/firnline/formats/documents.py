"""What the metadata of any table looks like, of every format that has one: noticed by name, wherever it lies."""

from __future__ import annotations

from firnline.formats.iceberg.names import DOCUMENT_NAMES as ICEBERG_NAMES
from firnline.formats.strangers import STRANGE_NAMES

DOCUMENT_NAMES = (*ICEBERG_NAMES, *STRANGE_NAMES)
