"""Transaction logs: what a commit changed. Nobody needs one to read data; it is kept with the snapshot of its name."""

from __future__ import annotations

from typing import Final

from firnline.formats.icechunk.ids import WIDTH, name_of
from firnline.formats.icechunk.reading.damage import CorruptIcechunk
from firnline.formats.icechunk.reading.envelope import ObjectType, opened
from firnline.formats.icechunk.reading.flat import Field, FlatBuffer, TableLayout

_CHANGES: Final = (
    "new_groups",
    "new_arrays",
    "deleted_groups",
    "deleted_arrays",
    "updated_arrays",
    "updated_groups",
    "updated_chunks",
)
_LOG: Final = TableLayout(
    "TransactionLog",
    (
        Field("id", WIDTH, required=True),
        *(Field(name, required=True) for name in _CHANGES),
        Field("moved_nodes"),
        Field("extra", reserved=True),
    ),
)


def refuse_other_log(data: bytes, snapshot: str) -> None:
    """Raises CorruptIcechunk unless this is the log of the snapshot."""
    root = FlatBuffer(opened(data, ObjectType.TRANSACTION_LOG).body).root(_LOG)
    if (own := name_of(root.rows("id", WIDTH).tobytes())) != snapshot:
        raise CorruptIcechunk(f"it says that it is the log of {own}")
