"""Rows into Java and back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from harness.paimon.gateway import Jvm
from harness.paimon.shapes import COLUMNS, Row

INSERT, DELETE = "+I", "-D"


class JavaRows:
    """Makes Java rows. Java values are kept: each would be a call to the JVM again."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._value = cache(self._value_of)
        self._kinds = {kind: jvm.paimon("types.RowKind").fromShortString(kind) for kind in (INSERT, DELETE)}

    def row(self, row: Row, kind: str) -> Any:
        made = self._jvm.paimon("data.GenericRow")(self._kinds[kind], len(row))
        for place, (value, column) in enumerate(zip(row, COLUMNS.values(), strict=True)):
            if value is not None:
                made.setField(place, self._value(value, column))
        return made

    def _value_of(self, value: Any, column: str) -> Any:
        if column == "STRING":
            return self._jvm.paimon("data.BinaryString").fromString(value)
        if column.startswith("TIMESTAMP"):
            return self._jvm.paimon("data.Timestamp").fromEpochMillis(value)
        return value

    def read(self, table: Any) -> list[Row]:
        """Returns the rows of a Java table, as it was opened."""
        made = self._jvm.paimon("utils.RowDataToObjectArrayConverter")(table.rowType())
        read, splits = table.newRead(), table.newScan().plan().splits()
        return [row for split in splits for row in self._of_reader(read.createReader(split), made)]

    def _of_reader(self, reader: Any, made: Any) -> Iterator[Row]:
        rows = self._jvm.paimon("reader.RecordReaderIterator")(reader)
        while rows.hasNext():
            yield _parsed(made.toGenericRow(rows.next()).toString())
        rows.close()


def _parsed(text: str) -> Row:
    """The row of Java's `+I(1,a,null,...)`."""
    values = text[text.index("(") + 1 : -1].split(",")
    return tuple(_plain(value, column) for value, column in zip(values, COLUMNS.values(), strict=True))


def _plain(value: str, column: str) -> Any:
    if value == "null":
        return None
    if column == "BOOLEAN":
        return value == "true"
    if column.startswith("TIMESTAMP"):
        return _milliseconds(value)
    return value if column == "STRING" else int(value)


def _milliseconds(text: str) -> int:
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // timedelta(milliseconds=1)
