"""Statements against a lake: names become views of the data source, queries become DataFrames."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from itertools import count

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField
from pyspark.sql.utils import is_remote
from sqlglot.tokenizer_core import TokenType

from firnline.app.places import Places
from firnline.errors import FirnlineError, UsageError
from firnline.formats.registry import kit_named
from firnline.model.times import tell_instant
from firnline.ops.marks.tags import add_tag, resolve
from firnline.ports.formats import State
from firnline.ports.kits import HasSparkSource
from firnline.spark.session import active, is_ours, is_stopped, session
from firnline.sql import ROWS
from firnline.sql.asking import AT_A_SNAPSHOT, asked_of, open_relation, snapshot_at
from firnline.sql.contents import FILE, EntryRows
from firnline.sql.faults import understanding
from firnline.sql.lake_wide import tell
from firnline.sql.reading import relation_options, sent_options, source_options
from firnline.sql.routing import Routes
from firnline.sql.source import PUSHDOWN, own_name, register, spark_schema
from firnline.sql.text.columns import refuse_unknown
from firnline.sql.text.namespaces import tables_shown
from firnline.sql.text.statements import (
    Describe,
    NamedTable,
    Query,
    ShowTables,
    Statement,
    TagSnapshot,
    UseTable,
    loading,
    meant,
    parsed,
)
from firnline.sql.text.versions import AtInstant, AtVersion
from firnline.sql.text.words import Path, end_of_sample, paths_of

_WITH_JARS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
_LEAST_COLUMN = {"entries": "status", "files": "content", "manifests": "content"}


def prepared(spark: SparkSession) -> SparkSession:
    """Returns a session of firnline's as statements like it best: filters handed down, instants in UTC, no log beside
    answers. One that was handed in stays as it is.
    """
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
    """What a name of a query turned out to be, and the temporary view that stands for it. `state` is None for what is
    told of the whole lake; `version` is the ref or the snapshot that is read, the table as it is if None.
    """

    named: NamedTable
    state: State | None
    what: str
    view: str
    version: str | None = None


@dataclass
class Statements:
    """Runs statements one after the other, in the session that was handed in or in one of its own. Each sees one
    version of every table that it names; where `route`, one that only a tier has is read there. Others may run theirs
    in the same session: `_source` tells views and the data source behind them apart.
    """

    places: Places
    config: str | None = None
    route: bool = True
    _readied: SparkSession | None = field(default=None, init=False)
    _used: str | None = field(default=None, init=False)
    _views: list[str] = field(default_factory=list, init=False)
    _source: str = field(default_factory=own_name, init=False)
    _numbers: Iterator[int] = field(default_factory=count, init=False)

    @property
    def spark(self) -> SparkSession:
        """The session; another one if it was stopped, as in a notebook, between two statements."""
        if self._readied is None or is_stopped(self._readied):
            found = session(self.places.engines.session)
            self._readied = prepared(found) if is_ours(found) else found
            register(self._readied, self.config, self._source)
        return self._readied

    def run(self, text: str) -> Iterator[Answer]:
        """Yields the answer to each statement of a text; a statement runs when its answer is asked for. Raises where
        one cannot be understood, before any of them runs.
        """
        found = parsed(text)
        if not self._is_started:
            for each in found:
                self._refuse_unknown_columns(each)
        return map(self._one, found)

    def _one(self, statement: Statement) -> Answer:
        match statement:
            case UseTable(table):
                self._used = str(self.places.source(table).load().table)
                return StatementAnswer(f"using {self._used}")
            case TagSnapshot() as tagging:
                return self._tag(tagging)
            case Describe(table, extended):
                return self._describe(table, extended)
            case ShowTables(namespace, pattern):
                return self._show_tables(namespace, pattern)
            case Query() as query:
                return self._query(query)

    def _tag(self, statement: TagSnapshot) -> StatementAnswer:
        table = statement.table or self._used
        if table is None:
            raise UsageError("TAG without a table", hint="write OF ns.table, or USE TABLE ns.table; before it")
        tag = add_tag(self.places.table_context(table), statement.name, statement.snapshot, statement.age_ms)
        kept = "forever" if tag.until_ms is None else f"until {tell_instant(tag.until_ms)}"
        return StatementAnswer(f"tagged {tag.ref.snapshot} of {table} as {tag.ref.name}: kept {kept}")

    def _describe(self, table: NamedTable, extended: bool) -> DataFrame:
        """Returns the columns as Spark describes them; extended, also what the table is."""
        with understanding():
            view = self._view(table, {})
            frame = self._frame(view, None)
            columns = [(each.name, each.dataType.simpleString(), _comment(each)) for each in frame.schema]
            details = [("", "", ""), ("# Detailed Table Information", "", ""), *_details(view)] if extended else []
            return self.spark.createDataFrame([*columns, *details], "col_name string, data_type string, comment string")

    def _show_tables(self, namespace: str | None, pattern: str | None) -> DataFrame:
        """Returns the tables with the namespace by which a query finds them. A catalog that cannot be read is told."""
        tables, unread = tables_shown(self.places.catalogs, namespace)
        for name, problem in unread.items():
            tell(name, problem)
        rows = [(space, name, False) for space, name in tables if pattern is None or _matches(name, pattern)]
        return self.spark.createDataFrame(rows, "namespace string, tableName string, isTemporary boolean")

    def _query(self, query: Query) -> DataFrame:
        with understanding():
            self._drop_views()
            views = self._resolved(query)
            for each in views:
                self._create(each, query)
            return self.spark.sql(_with_views(query, views))

    @property
    def _is_started(self) -> bool:
        return self._readied is not None or self.places.engines.session is not None or active() is not None

    def _refuse_unknown_columns(self, statement: Statement) -> None:
        """Raises UsageError for a name that no table has: Spark would say it too, once it has started. What cannot be
        opened without Spark, and other versions of a table, which may have had other columns, are left to it.
        """
        if not isinstance(statement, Query) or any(each.version is not None for each in statement.tables):
            return
        known: list[str] = []
        for named in statement.tables:
            try:
                state, what = meant(named, partial(self._load, loaded={}))
                relation, _ = open_relation(asked_of(relation_options(what, state, self.config)))
                known += relation.schema.names
            except FirnlineError:
                return
        refuse_unknown(statement.columns, known)

    def _drop_views(self) -> None:
        """Drops the views of the query before. Over Spark Connect they stay as long as the session: there a DataFrame
        is the query's text, of which the server looks up every name whenever rows are asked for.
        """
        for each in () if is_remote() else self._views:
            self.spark.catalog.dropTempView(each)
        self._views.clear()

    def _resolved(self, query: Query) -> list[View]:
        """Returns a view for each name. A table is loaded once, whatever of it is read: all see one version."""
        loaded: dict[str, State | None] = {}
        return [self._view(named, loaded) for named in query.tables]

    def _view(self, named: NamedTable, loaded: dict[str, State | None]) -> View:
        state, what = meant(named, partial(self._load, loaded=loaded))
        view = f"{self._source}_{next(self._numbers)}"
        return View(named, None, what, view) if state is None else self._versioned(named, state, what, view)

    def _versioned(self, named: NamedTable, state: State, what: str, view: str) -> View:
        """Returns the view of the version that the query asks for, of the live table or of a tier that has it. Raises
        UsageError if none has, and for what is the same at every version.
        """
        if named.version is not None and what not in AT_A_SNAPSHOT:
            raise UsageError(f"{what} is the same at every version", hint=f"versions have: {', '.join(AT_A_SNAPSHOT)}")
        match named.version:
            case AtVersion(name):
                found, _ = self._routes.version(state, lambda inspect, each: resolve(each, name))
                version = name
            case AtInstant(expression):
                at_ms = self._instant_ms(expression)
                found, version = self._routes.version(state, lambda inspect, each: snapshot_at(inspect, each, at_ms))
            case _:
                return View(named, state, what, view)
        return View(named, found, what, view, version)

    @property
    def _routes(self) -> Routes:
        return Routes(self.places, self.route)

    def _instant_ms(self, expression: str) -> int:
        """Returns what an expression comes to, in the session's time zone: Spark itself reckons it."""
        (row,) = self.spark.sql(f"SELECT unix_millis(try_cast(({expression}) AS TIMESTAMP_LTZ)) AS at").collect()
        if row.at is None:
            raise UsageError(f"{expression} is not an instant", hint="such as TIMESTAMP AS OF '2026-11-16 09:00:00'")
        return int(row.at)

    def _load(self, table: str, loaded: dict[str, State | None]) -> State | None:
        if table not in loaded:
            loaded[table] = loading(self.places)(table)
        return loaded[table]

    def _create(self, view: View, query: Query) -> None:
        self._frame(view, query).createOrReplaceTempView(view.view)
        self._views.append(view.view)

    def _frame(self, view: View, query: Query | None) -> DataFrame:
        """Returns the rows that a view stands for, with the columns that a query can need; all without a query."""
        if view.state is not None and view.what == ROWS:
            kit = kit_named(view.state.format)
            if isinstance(kit, HasSparkSource) and has_runtime(self.spark.conf.get, kit.runtime):
                return self._of_runtime(view.state, view.version, kit)
        return self._of_source(view, query)

    def _of_runtime(self, state: State, version: str | None, kit: HasSparkSource) -> DataFrame:
        """Returns a table's rows through its format's own runtime, by the very metadata that was loaded."""
        source = kit.spark_source(state, version)
        return self.spark.read.format(source.name).options(**source.options).load(source.load)

    def _of_source(self, view: View, query: Query | None) -> DataFrame:
        """Returns what the data source makes of a table or of the lake, with no more columns than the query can need.

        Its schema is found here: Spark would start a Python process to ask for it.
        """
        given = source_options(self.spark, view.what, view.state, self.config, {"versionAsOf": view.version})
        relation = open_relation(asked_of(given))[0]
        if isinstance(relation, EntryRows) and query is not None:
            relation = relation.narrowed([each for each in _file_parts(query) if each in relation.known_parts])
            given["columns"] = ",".join(f"{FILE}.{each}" for each in relation.parts or ())
        schema = relation.schema
        columns = None if query is None or query.whole_rows else _needed(schema.names, query, view.what)
        return (
            self.spark.read.format(self._source)
            .schema(spark_schema(schema, columns))
            .options(**sent_options(given))
            .load()
        )


def has_runtime(setting: Callable[[str, str], str | None], runtime: str) -> bool:
    """Tells whether a format's own runtime is among the jars that a session names. `setting` returns a setting of the
    session, or what stands for one that is not set.
    """
    return any(runtime in (setting(each, "") or "") for each in _WITH_JARS)


def _matches(name: str, pattern: str) -> bool:
    """Tells whether a name is like one of Spark's patterns: `*` is any text, `|` stands between several."""
    return any(fnmatchcase(name.lower(), each.strip().lower()) for each in pattern.split("|"))


def _comment(column: StructField) -> str | None:
    found: str | None = (column.metadata or {}).get("comment")
    return found


def _details(view: View) -> Iterator[tuple[str, str, str]]:
    """Yields what a table is; nothing of what is told of the whole lake."""
    state = view.state
    if state is None:
        return
    facts = {
        "Name": state.table, "Format": state.format, "Location": state.location, "Table UUID": state.uuid,
        "Metadata": state.fence, "Snapshots": str(len(state.graph)), "Current snapshot": state.current or "none",
    }  # fmt: skip
    yield from ((name, value, "") for name, value in facts.items())
    yield from ((f"property {name}", value, "") for name, value in sorted(state.properties.items()))


def _file_parts(query: Query) -> list[str]:
    """Returns the parts of the file that a query may name; none if all of it counts, since it stands there without a
    part or may be needed without being named.
    """
    words = query.words
    parts = {
        words[place + 2].text if place + 2 < len(words) and words[place + 1].kind is TokenType.DOT else None
        for place, word in enumerate(words)
        if word.text.lower() == FILE and word.kind is not TokenType.STRING
    }
    if query.whole_rows or None in parts:
        return []
    return sorted(each.lower() for each in parts if each)


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
    yield words[0].first, words[-1].last, view.view
    if not view.named.has_alias:
        alias = "`" + words[-1].text.replace("`", "``") + "`"
        end = end_of_sample(query.words, words[-1].last)
        yield end + 1, end, f" AS {alias}"
        yield from _qualified(query, view, alias)


def _has_star(text: str, path: Path) -> bool:
    """Tells whether a path of names goes on with a star: what else stands after a dot is a name of the path."""
    return text[path.words[-1].last + 1 :].lstrip().startswith(".")


def _qualified(query: Query, view: View, alias: str) -> Iterator[tuple[int, int, str]]:
    """Yields where columns carry the table's name, in full or without its first parts: it is the alias there."""
    names = [name.lower() for name in view.named.path.names]
    tables = {word.first for each in query.tables for word in each.path.words}
    for path in paths_of(query.words):
        said = [name.lower() for name in path.names]
        if _has_star(query.text, path):
            said.append("*")
        for length in range(len(names), 1, -1):
            if path.first not in tables and len(said) > length and said[:length] == names[-length:]:
                yield path.first, path.words[length - 1].last, alias
                break
