"""Which adapter reads a format's own metadata as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firnline.errors import UnsupportedFormat
from firnline.ports.formats import State
from firnline.ports.stores import Get

if TYPE_CHECKING:
    from firnline.ports.inspect import Inspect


def inspect_on(state: State, store: Get) -> Inspect:
    """Returns what reads the metadata of this table's format. Raises UnsupportedFormat where nothing does."""
    if state.format == "iceberg":
        from firnline.formats.iceberg.tables import IcebergTables

        return IcebergTables(store)
    if state.format == "paimon":
        from firnline.formats.paimon.tables import PaimonTables

        return PaimonTables(store)
    raise UnsupportedFormat(
        f"{state.table}: the metadata of a {state.format} table is not shown as rows", hint="`all_snapshots` is"
    )
