"""The rows of a query on their way out: a table to read, CSV, JSON, or Parquet. Spark writes every value as text."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import islice
from typing import TextIO

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from firnline.errors import FirnlineError, UsageError
from firnline.foreign import harmless_json
from firnline.plans.pages import Grid, Line, Page

_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")
_MOST_ROWS = 1_000
_NULL = "NULL"


class Format(StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def write(
    frame: DataFrame, form: Format, out: str | None, as_shown: Callable[[Page], str] = lambda page: page.to_text()
) -> None:
    """Writes the rows to stdout or to `out`, a file; Parquet to `out`, a folder. Never over something that is there.
    `as_shown` returns a page as stdout has it: a terminal is only so wide.
    """
    if form is Format.PARQUET:
        if out is None:
            raise UsageError("Parquet needs a place to be written to", hint="--output parquet OUT")
        frame.write.parquet(out)
        return
    if out is None:
        _to(sys.stdout, frame, form, as_shown)
        return
    try:
        with open(out, "x", encoding="utf-8", newline="") as target:
            _to(target, frame, form, lambda page: page.to_text())
    except OSError as problem:
        raise FirnlineError(f"cannot write {out}: {problem.strerror}", hint="name another file") from problem


def _to(target: TextIO, frame: DataFrame, form: Format, as_shown: Callable[[Page], str]) -> None:
    match form:
        case Format.CSV:
            writer = csv.writer(target, lineterminator="\n")
            writer.writerow(frame.columns)
            writer.writerows([_text(cell, "") for cell in row] for row in _rows(frame))
        case Format.JSON:
            _json(target, frame)
        case _:
            print(as_shown(page_of(frame)), file=target)


def _json(target: TextIO, frame: DataFrame) -> None:
    """Writes a JSON list, an object on each line."""
    names = [F.col(each).alias(name) for each, name in zip(_renamed(frame).columns, frame.columns, strict=True)]
    lines = _renamed(frame).select(F.to_json(F.struct(*names), {"ignoreNullFields": "false"}))
    before = "["
    for (line,) in lines.toLocalIterator():
        target.write(f"{before}{harmless_json(line)}")
        before = ",\n"
    target.write("]\n" if before != "[" else "[]\n")


def page_of(frame: DataFrame) -> Page:
    """Returns the first rows as a page: a terminal is not where a million of them are read."""
    rows = [tuple(_text(cell, _NULL) for cell in row) for row in islice(_rows(frame), _MOST_ROWS + 1)]
    right = frozenset(place for place, each in enumerate(frame.schema) if each.dataType.typeName() in _NUMBERS)
    shown = Grid(tuple(rows[:_MOST_ROWS]), tuple(frame.columns), right)
    if len(rows) > _MOST_ROWS:
        return Page((shown, Line(f"the first {_MOST_ROWS:,} rows; --output csv, json or parquet has all")))
    return Page((shown, Line("1 row" if len(rows) == 1 else f"{len(rows)} rows")))


def _rows(frame: DataFrame) -> Iterator[tuple[str | None, ...]]:
    """Yields the rows as texts, a partition at a time."""
    plain = _renamed(frame)
    texts = [_as_text(F.col(name), each.dataType) for name, each in zip(plain.columns, plain.schema, strict=True)]
    return (tuple(row) for row in plain.select(*texts).toLocalIterator())


def _renamed(frame: DataFrame) -> DataFrame:
    """Returns the columns under names of their own: a query may give two the same one."""
    return frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))


def _as_text(column: Column, kind: DataType) -> Column:
    nested = isinstance(kind, (ArrayType, MapType, StructType))
    return F.to_json(column) if nested else column.cast("string")


def _text(cell: str | None, missing: str) -> str:
    return missing if cell is None else cell
