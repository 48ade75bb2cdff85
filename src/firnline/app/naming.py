"""What a program names tables and snapshots by, read into the texts that everything else takes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Protocol

from firnline.app.catalogs import Table as Named
from firnline.errors import UsageError
from firnline.journal.layout import names_run
from firnline.model.names import refuse_no_text, written
from firnline.model.numbers import plain_number
from firnline.ports.catalogs import TableName

Table = Named | tuple[str, ...] | os.PathLike[str]
"""A table as a program names it: a text, parts as PyIceberg has them, a folder, or what a listing gave."""
Snapshot = str | int
"""A snapshot as a program names it: its id as a text or a number, or a ref."""


class HasRunName(Protocol):
    """What has a run's name: the run itself, as `lake.runs(table)` and `lake.expire(table)` return it."""

    @property
    def id(self) -> str: ...


RunNamed = str | HasRunName
"""A run as a program names it: TABLE@STAMP, a stamp alone, or the run that a method returned."""

_TABLES = '"lake.sales.orders", ("sales", "orders"), a location, or a name of `lake.tables()`'
_RUNS = '"lake.sales.orders@20261119T003734Z-4961ce", its stamp alone, or what `lake.runs(table)` returned'
_SNAPSHOTS = "its id as a number or a text, or the name of a branch or a tag"


def table_meant(table: object) -> Named:
    """Returns a table's name or location; of parts the text that reads back as the same. Raises UsageError for what
    names no table.
    """
    match table:
        case TableName() | str():
            return table
        case tuple() | list() if table and all(isinstance(part, str) for part in table):
            return written(table)
        case os.PathLike():
            return os.path.abspath(os.fsdecode(table))
    raise UsageError(f"{_in_a_line(table)} names no table", hint=f"a table is {_TABLES}")


def _in_a_line(given: object) -> str:
    """Returns an object as Python shows it; one shown as a page, such as a table of PyIceberg's, by its type."""
    shown = repr(given)
    return f"{shown:.64}" if "\n" not in shown else f"a {type(given).__name__}"


def run_named(run: object) -> str:
    """Returns the name of a run, or of a table whose last run is meant. Raises UsageError for what names none."""
    name = str(run) if isinstance(run, TableName) else getattr(run, "id", run)
    if not isinstance(name, str):
        raise UsageError(f"{run!r:.64} names no run", hint=f"a run is {_RUNS}")
    refuse_no_text(name, "a run's name")
    return name


def one_run_named(run: object, of_table: str) -> str:
    """Returns the name of a run. Raises UsageError for what names none; for a table with the method that takes one."""
    name = run_named(run)
    if not names_run(name):
        raise UsageError(f"{name!r:.64} names no run", hint=f"`lake.{of_table}` is of a table; a run is {_RUNS}")
    return name


def tables_meant(tables: Table | Iterable[Table]) -> tuple[Named, ...]:
    """Returns each of several tables, or the one that is given. A tuple of texts is several here."""
    if isinstance(tables, TableName | str) or not isinstance(tables, Iterable):
        return (table_meant(tables),)
    return tuple(map(table_meant, tables))


def texts_meant(asked: str, texts: object) -> tuple[str, ...]:
    """Returns each of several names, ids or locations; the one that is given alone, which would be taken for a list of
    its letters. Raises UsageError for what is none.
    """
    several = (texts,) if isinstance(texts, str | os.PathLike) else texts
    if isinstance(several, Iterable) and not isinstance(several, bytes | Mapping):
        found = [_text(each) for each in several]
        texts_alone = tuple(each for each in found if each is not None)
        if len(texts_alone) == len(found):
            return texts_alone
    raise UsageError(f"{asked}: {texts!r:.64} is no list of texts", hint=f'{asked}=["…", "…"]')


def _text(each: object) -> str | None:
    each = plain_number(each)
    match each:
        case str() | os.PathLike():
            return os.fsdecode(each)
        case int() if not isinstance(each, bool):
            return str(each)
    return None


def snapshot_meant(snapshot: object) -> str:
    """Returns a snapshot's id or a ref's name as a text. Raises UsageError for what is neither."""
    snapshot = plain_number(snapshot)
    match snapshot:
        case str():
            refuse_no_text(snapshot, "a snapshot's name")
            return snapshot
        case int() if not isinstance(snapshot, bool):
            return str(snapshot)
    raise UsageError(f"{snapshot!r:.64} names no snapshot", hint=f"a snapshot is {_SNAPSHOTS}")
