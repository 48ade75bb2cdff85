"""Runs inside pypaimon's own environment: one JSON request a line on stdin, one answer a line on stdout.

Nothing of firnline can be imported here. Every public function below is a verb.
"""

from __future__ import annotations

import datetime
import importlib
import json
import sys
from typing import Any

import pyarrow

EPOCH = datetime.datetime(1970, 1, 1)
DAY = datetime.timedelta(days=1)
MILLISECOND = datetime.timedelta(milliseconds=1)
ARROW = {
    "INT": pyarrow.int32(),
    "STRING": pyarrow.string(),
    "DATE": pyarrow.date32(),
    "BOOLEAN": pyarrow.bool_(),
    "TIMESTAMP(3)": pyarrow.timestamp("ms"),
}


def create(
    folder: str, columns: dict[str, str], partitions: list[str], keys: list[str], options: dict[str, str]
) -> None:
    fields = [pyarrow.field(name, ARROW[kind], nullable=name not in keys) for name, kind in columns.items()]
    schema = _class("Schema").from_pyarrow_schema(pyarrow.schema(fields), partitions or None, keys or None, options)
    io = _class("common.file_io", "FileIO").get(folder, _class("common.options", "Options")({}))
    _class("schema.schema_manager", "SchemaManager")(io, folder).create_table(schema)


def write(
    folder: str, branch: str, rows: list[list[Any]], overwrite: dict[str, Any] | None, commits: bool = True
) -> None:
    """Adds rows; `overwrite` are the partition values that they replace, all of the table where it is empty."""
    table = _table(folder, branch)
    builder = table.new_batch_write_builder()
    if overwrite is not None:
        builder = builder.overwrite(overwrite)
    fields = _class("schema.data_types", "PyarrowFieldParser").from_paimon_schema(table.fields)
    columns = [
        pyarrow.array([row[place] for row in rows], fields.field(place).type) for place in range(len(fields.names))
    ]
    writer = builder.new_write()
    writer.write_arrow(pyarrow.Table.from_arrays(columns, schema=fields))
    messages = writer.prepare_commit()
    if commits:
        commit = builder.new_commit()
        commit.commit(messages)
        commit.close()
    writer.close()


def truncate(folder: str, branch: str) -> None:
    commit = _table(folder, branch).new_batch_write_builder().new_commit()
    commit.truncate_table()
    commit.close()


def tag(folder: str, branch: str, name: str, snapshot: int, ttl: str | None) -> None:
    _table(folder, branch).create_tag(name, snapshot, time_retained=ttl)


def drop_tag(folder: str, branch: str, name: str) -> None:
    _table(folder, branch).delete_tag(name)


def create_branch(folder: str, name: str, from_tag: str | None) -> None:
    _table(folder, "main").branch_manager().create_branch(name, from_tag)


def drop_branch(folder: str, name: str) -> None:
    _table(folder, "main").branch_manager().drop_branch(name)


def rollback(folder: str, branch: str, target: int | str) -> None:
    _table(folder, branch).rollback_to(target)


def consumer(folder: str, branch: str, name: str, next_snapshot: int) -> None:
    one = _class("consumer.consumer", "Consumer")(next_snapshot)
    _table(folder, branch).consumer_manager().reset_consumer(name, one)


def rows(folder: str, branch: str, selectors: list[dict[str, str]]) -> list[list[list[Any]]]:
    """Returns the rows of each view: a snapshot or tag, as the option that names it (none: the branch's newest)."""
    return [_rows(_table(folder, branch).copy(selector).new_read_builder()) for selector in selectors]


def files(folder: str, branch: str, selectors: list[dict[str, str]]) -> list[list[str]]:
    """Returns the data files and deletion files that pypaimon would open to read each view."""
    return [_files(_table(folder, branch).copy(selector).new_read_builder()) for selector in selectors]


def _rows(builder: Any) -> list[list[Any]]:
    read = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return [[_plain(value) for value in row.values()] for row in read.to_pylist()]


def _files(builder: Any) -> list[str]:
    found: set[str] = set()
    for split in builder.new_scan().plan().splits():
        found.update(split.file_paths)
        deletions = getattr(split, "data_deletion_files", None) or []
        found.update(each.dv_index_path for each in deletions if each is not None)
    return sorted(found)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - EPOCH) // MILLISECOND
    if isinstance(value, datetime.date):
        return (datetime.datetime.combine(value, datetime.time()) - EPOCH) // DAY
    return value


def _table(folder: str, branch: str) -> Any:
    """A branch with its own schema: a table copied with the option `branch` keeps the main one's."""
    kind = _class("table.file_store_table", "FileStoreTable")
    table = kind.from_path(folder)
    if branch == "main":
        return table
    schema = _class("schema.schema_manager", "SchemaManager")(table.file_io, folder, branch=branch).latest()
    name = _class("common.identifier", "Identifier").create("default", "table", branch=branch)
    return kind(table.file_io, name, folder, schema)


def _class(module: str, name: str = "") -> Any:
    """pypaimon is not there for whoever checks types: its classes are found by name."""
    if not name:
        return getattr(importlib.import_module("pypaimon"), module)
    return getattr(importlib.import_module(f"pypaimon.{module}"), name)


VERBS = {
    each.__name__: each
    for each in (create, write, truncate, tag, drop_tag, create_branch, drop_branch, rollback, consumer, rows, files)
}


def main() -> None:
    # What pypaimon prints must not stand between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        try:
            said: dict[str, Any] = {"answer": VERBS[request["verb"]](**request["arguments"])}
        except Exception as error:
            said = {"kind": type(error).__name__, "message": str(error)}
        answers.write(json.dumps(said) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
