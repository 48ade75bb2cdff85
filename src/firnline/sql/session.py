"""Statements against a lake: names become views of the data source, queries become DataFrames."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from firnline.app.places import Places
from firnline.errors import NoSuchTable, UsageError
from firnline.formats.registry import kit_named
from firnline.model.times import format_instant
from firnline.ops.marks.tags import add_tag, resolve
from firnline.ports.formats import State
from firnline.ports.kits import HasSparkSource
from firnline.settings import find_config
from firnline.spark.session import is_stopped, session
from firnline.sql.asking import METADATA, ROWS, asked_of, open_relation
from firnline.sql.faults import understanding
from firnline.sql.source import NAME, PUSHDOWN, register, spark_schema
from firnline.sql.statements import NamedTable, Query, TagSnapshot, UseTable, parse, paths_of, split

_WITH_JARS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
_LEAST_COLUMN = {"entries": "status", "files": "content", "manifests": "content"}


def prepared(spark: SparkSession) -> SparkSession:
    """Returns the session with what statements rely on: filters handed down, instants in UTC, no log beside answers."""
    spark.conf.set(PUSHDOWN, "true")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    if not is_remote():
        spark.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").disabled = True
    return spark


@dataclass(frozen=True, slots=True)
class StatementAnswer:
    """The answer to a statement that is no query."""

    text: str


Answer = StatementAnswer | DataFrame


@dataclass(frozen=True, slots=True)
class View:
    """What a name of a query turned out to be, and the temporary view that stands for it."""

    named: NamedTable
    state: State
    what: str
    view: str


@dataclass
class Statements:
    """Runs statements one after the other, in the session that was handed in or in one of its own. Each sees one
    version of every table that it names.
    """

    places: Places
    config: str | None = None
    _readied: SparkSession | None = field(default=None, init=False)
    _used: str | None = field(default=None, init=False)
    _views: list[str] = field(default_factory=list, init=False)
    _numbers: Iterator[int] = field(default_factory=count, init=False)

    @property
    def spark(self) -> SparkSession:
        """The session; another one if it was stopped, as in a notebook, between two statements."""
        if self._readied is None or is_stopped(self._readied):
            self._readied = prepared(session(self.places.engines.session))
            register(self._readied)
        return self._readied

    def run(self, text: str) -> Iterator[Answer]:
        """Yields the answer to each statement of a text; a statement runs when its answer is asked for."""
        return map(self._one, split(text))

    def _one(self, text: str) -> Answer:
        match parse(text):
            case UseTable(table):
                self._used = str(self.places.source(table).load().table)
                return StatementAnswer(f"using {self._used}")
            case TagSnapshot() as statement:
                return self._tag(statement)
            case Query() as query:
                return self._query(query)

    def _tag(self, statement: TagSnapshot) -> StatementAnswer:
        table = statement.table or self._used
        if table is None:
            raise UsageError("TAG without a table", hint="write OF ns.table, or USE TABLE ns.table; before it")
        tag = add_tag(self.places.table_context(table), statement.name, statement.snapshot, statement.age_ms)
        kept = "forever" if tag.until_ms is None else f"until {format_instant(tag.until_ms)}"
        return StatementAnswer(f"tagged {tag.ref.snapshot} of {table} as {tag.ref.name}: kept {kept}")

    def _query(self, query: Query) -> DataFrame:
        with understanding():
            self._drop_views()
            views = self._resolved(query)
            for each in views:
                self._create(each, query)
            return self.spark.sql(_with_views(query, views))

    def _drop_views(self) -> None:
        for each in self._views:
            self.spark.catalog.dropTempView(each)
        self._views.clear()

    def _resolved(self, query: Query) -> list[View]:
        """Returns a view for each name. A table is loaded once, whatever of it is read: all see one version."""
        loaded: dict[str, State | None] = {}
        return [self._view(named, loaded) for named in query.tables]

    def _view(self, named: NamedTable, loaded: dict[str, State | None]) -> View:
        names = named.path.names
        whole, above = named.path.text, named.path.above
        view = f"firnline_{next(self._numbers)}"
        state = self._load(whole, loaded)
        if state is not None:
            return View(named, state, ROWS, view)
        what = names[-1].lower()
        state = self._load(above, loaded) if what in METADATA else None
        if state is None:
            known = f"a table, or a table and one of: {', '.join(METADATA)}"
            raise NoSuchTable(f"no such table: {whole}", hint=f"{known}; `firnline tables` lists the tables")
        return View(named, state, what, view)

    def _load(self, table: str, loaded: dict[str, State | None]) -> State | None:
        if table not in loaded:
            try:
                loaded[table] = self.places.source(table).load()
            except NoSuchTable:
                loaded[table] = None
        return loaded[table]

    def _create(self, view: View, query: Query) -> None:
        kit = kit_named(view.state.format)
        if view.what == ROWS and isinstance(kit, HasSparkSource) and self._has_runtime(kit.runtime):
            frame = self._of_runtime(view, kit)
        else:
            frame = self._of_source(view, query)
        frame.createOrReplaceTempView(view.view)
        self._views.append(view.view)

    def _has_runtime(self, name: str) -> bool:
        return any(name in (self.spark.conf.get(name, "") or "") for name in _WITH_JARS)

    def _of_runtime(self, view: View, kit: HasSparkSource) -> DataFrame:
        """Returns a table's rows through its format's own runtime, at the very version that was loaded."""
        snapshot = view.state.current if view.named.snapshot is None else resolve(view.state, view.named.snapshot)
        source = kit.spark_source(view.state, snapshot)
        return self.spark.read.format(source.name).options(**source.options).load(source.load)

    def _of_source(self, view: View, query: Query) -> DataFrame:
        """Returns what the data source makes of a table, with no more columns than the query can need.

        Its schema is found here: Spark would start a Python process to ask for it.
        """
        options = {
            "table": view.state.table,
            "what": view.what,
            "version": view.state.fence,
            "snapshot": view.named.snapshot,
            "pushdown": self.spark.conf.get(PUSHDOWN, "false"),
            "config": self._config_file(),
            "home": os.environ.get("PYICEBERG_HOME"),
        }
        given = {name: value for name, value in options.items() if value}
        schema = open_relation(asked_of(given))[0].schema
        columns = None if query.whole_rows else _needed(schema.names, query, view.what)
        return self.spark.read.format(NAME).schema(spark_schema(schema, columns)).options(**given).load()

    def _config_file(self) -> str | None:
        found = find_config(self.config)
        return None if found is None else str(found.absolute())


def _needed(columns: Sequence[str], query: Query, what: str) -> list[str]:
    """Returns the columns that the query names, whatever it means by them; one to count rows by where it names none."""
    said = {word.text.lower() for word in query.words}
    return [name for name in columns if name.lower() in said] or [_LEAST_COLUMN.get(what, columns[0])]


def _with_views(query: Query, views: Sequence[View]) -> str:
    """Returns the query with each table's name replaced by its view, from the end so that places stay true."""
    edits = [edit for view in views for edit in _edits(query, view)]
    text = query.text
    for first, last, replacement in sorted(edits, reverse=True):
        text = text[:first] + replacement + text[last + 1 :]
    return text


def _edits(query: Query, view: View) -> Iterator[tuple[int, int, str]]:
    words = view.named.path.words
    alias = "`" + words[-1].text.replace("`", "``") + "`"
    yield words[0].first, words[-1].last, view.view if view.named.has_alias else f"{view.view} AS {alias}"
    if not view.named.has_alias:
        yield from _qualified(query, view, alias)


def _qualified(query: Query, view: View, alias: str) -> Iterator[tuple[int, int, str]]:
    """Yields where columns carry the table's name, in full or without its first parts: it is the alias there."""
    names = [name.lower() for name in view.named.path.names]
    tables = {word.first for each in query.tables for word in each.path.words}
    for path in paths_of(query.words):
        said = [name.lower() for name in path.names]
        for length in range(len(names), 1, -1):
            if path.first not in tables and len(said) > length and said[:length] == names[-length:]:
                yield path.first, path.words[length - 1].last, alias
                break
