"""`firnline sql`: tables and what they remember, asked in SQL."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.terminal import completing, options
from firnline.cli.terminal.output import Output, output_for
from firnline.cli.terminal.writing import text_of
from firnline.errors import FirnlineError, UsageError
from firnline.plans.pages import Line, Page

if TYPE_CHECKING:
    from firnline.lake import Lake

_PROMPT, _MORE = "firnline> ", "     ...> "
_LEAVE = ("exit", "quit")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:/")

StatementArg = Annotated[str | None, typer.Argument(metavar="[STATEMENT]", help="One or more, with ; between.")]
OutArg = Annotated[str | None, typer.Argument(metavar="[OUT]", help="Where to write the rows; default: stdout.")]
Form = Annotated[
    str,
    typer.Option(
        "--output",
        metavar="FORMAT",
        help="table, csv, json or parquet.",
        autocompletion=completing.values("table", "csv", "json", "parquet"),
    ),
]
Shell = Annotated[bool, typer.Option("--shell", help="Read statements from stdin, each up to its semicolon.")]


NoRoute = Annotated[
    bool, typer.Option("--no-route", help="Refuse a version that only a tier has, and say which one has it.")
]


def register(app: typer.Typer) -> None:
    app.command("sql")(sql)


def sql(
    statement: StatementArg = None,
    out: OutArg = None,
    form: Form = "table",
    shell: Shell = False,
    no_route: NoRoute = False,
    config: options.Config = None,
    as_json: options.Json = False,
) -> int:
    """Query tables, ns.table.all_snapshots, .entries, .files, .partitions, .manifests, .refs, .history,
    .metadata_log_entries, .runs, .ledger, and firnline.snapshots and firnline.runs of all tables, in Spark SQL.

    Also: FROM ns.table TIMESTAMP AS OF '…', VERSION AS OF N or 'ref', FOR TAG 'name'; DESCRIBE ns.table; SHOW TABLES;
    TAG snapshot N OF ns.table AS 'name' WITH RETENTION FOREVER (or n DAYS); USE TABLE ns.table.
    """
    wanted = "json" if as_json else form
    _check(statement, out, wanted, shell)
    from firnline.lake import open_lake
    from firnline.sql.text.words import split

    if statement is not None and not any(split(statement)):  # comments alone are none either
        raise UsageError("there is no statement", hint='firnline sql "SELECT …"')

    lake, output = open_lake(config), output_for(as_json)
    lake.route = not no_route
    if shell:
        return _converse(lake, wanted, output)
    _answer(lake, str(statement), wanted, out, output)
    return 0


def _check(statement: str | None, out: str | None, form: str, shell: bool) -> None:
    """Raises UsageError for what makes no sense, before any session is started."""
    if form not in ("table", "csv", "json", "parquet"):
        raise UsageError(f"unknown output {form!r}", hint="one of: table, csv, json, parquet")
    if shell == (statement is not None):
        raise UsageError("sql needs a statement, or --shell", hint='firnline sql "SELECT …"')
    if form == "parquet" and out is None:
        raise UsageError("Parquet needs a place to be written to", hint="--output parquet OUT")
    if out is not None and not _URI.match(out):
        _check_place(Path(out))


def _check_place(out: Path) -> None:
    """Raises UsageError where rows could not be written: a query may take long, and Spark to start."""
    if os.path.lexists(out):
        raise UsageError(f"{out} is there already", hint="name another; nothing was overwritten")
    if not out.parent.is_dir():
        raise UsageError(f"no such folder: {out.parent}", hint="make it first")
    if not os.access(out.parent, os.W_OK):
        raise UsageError(f"nothing may be written to {out.parent}", hint="name another folder")


def _answer(lake: Lake, text: str, form: str, out: str | None, output: Output) -> None:
    answers = lake.sql(text)  # before what loads Spark: a slip is told at once

    from firnline.sql.faults import understanding
    from firnline.sql.results import Format, write
    from firnline.sql.session import StatementAnswer

    for answer in answers:
        if isinstance(answer, StatementAnswer):
            output.show(Page((Line(answer.text),)), {"said": answer.text})
        else:
            with understanding():
                write(answer, Format(form), out, lambda page: text_of(page, sys.stdout))


def _converse(lake: Lake, form: str, output: Output) -> int:
    """Answers statement after statement; one that fails is said and the next is read."""
    text = ""
    while (line := _line(_MORE if text else _PROMPT)) is not None:
        if not text and line.strip().rstrip(";").lower() in _LEAVE:
            break
        text += line
        if _is_complete(text):
            _try(lake, text, form, output)
            text = ""
    _try(lake, text, form, output)
    return 0


def _line(prompt: str) -> str | None:
    """Returns the next line, None at the end. People get a prompt and their editing keys; a pipe does not."""
    if not sys.stdin.isatty():
        return sys.stdin.readline() or None
    try:
        return input(prompt) + "\n"
    except EOFError:
        return None


def _is_complete(text: str) -> bool:
    from firnline.sql.text.words import ends

    return ends(text)


def _try(lake: Lake, text: str, form: str, output: Output) -> None:
    try:
        _answer(lake, text, form, None, output)
    except FirnlineError as problem:
        output.fail(problem)
