"""The error for a table that a catalog does not find, with the names that were perhaps meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from firnline.errors import NoSuchTable, UnreadableMetadata
from firnline.ports.catalogs import TableName

_SHOWN = 3


def no_such_table(wanted: TableName, known: Iterable[TableName]) -> NoSuchTable | UnreadableMetadata:
    """Returns the error to raise; its hint suggests near names, those of the same namespace first.

    `known` is what the catalog lists now. A table that is among them was not dropped: a search that left it out would
    take its files for garbage.
    """
    tables = list(known)
    if wanted in tables:
        return UnreadableMetadata(
            f"the catalog lists {wanted} and says that there is no such table",
            hint="look at it with the engine that made it; drop it or register it again, if it is broken",
        )
    near = near_names(wanted, tables)
    hint = f"did you mean {' or '.join(near)}?" if near else "`firnline tables` lists what there is"
    return NoSuchTable(f"no table {wanted}", hint)


def near_names(wanted: TableName, known: Iterable[TableName]) -> list[str]:
    """Returns at most three names: near ones of the same namespace, then the same name or a near one
    elsewhere.
    """
    tables = list(known)
    same = {table.name: str(table) for table in tables if table.namespace == wanted.namespace}
    elsewhere = {str(table): table for table in tables if table.namespace != wanted.namespace}
    found = [same[name] for name in get_close_matches(wanted.name, same, _SHOWN)]
    found += [full for full, table in elsewhere.items() if table.name == wanted.name]
    found += [full for full in get_close_matches(str(wanted), elsewhere, _SHOWN) if full not in found]
    return found[:_SHOWN]
