"""What the metadata of any table looks like, of every format that has one: noticed by name, wherever it lies."""

from __future__ import annotations

from firnline.formats.iceberg.names import DOCUMENT_NAMES as ICEBERG_NAMES
from firnline.formats.paimon.names import table_of_schema
from firnline.formats.strangers import STRANGE_NAMES

DOCUMENT_NAMES = (*ICEBERG_NAMES, *STRANGE_NAMES)


def table_of_document(key: str) -> str:
    """Returns the folder of the table that a document belongs to: `…/t/metadata/x.json` to `…/t`, and to a Paimon table
    the schemas of its branches too.
    """
    return table_of_schema(key) or key.rpartition("/")[0].rpartition("/")[0]
