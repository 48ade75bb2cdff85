"""`firnline audit`: what was done to tables, by whom, and whether that log is whole."""

from __future__ import annotations

from typing import Annotated

import typer

from firnline.cli.terminal import options
from firnline.cli.terminal.output import output_for
from firnline.journal.audit.entries import AuditEntry
from firnline.plans.pages import Grid, Hint, Line, Page, number

audit_app = typer.Typer(help="Show and verify the log of what was done.", no_args_is_help=True)

OfTable = Annotated[str | None, typer.Option("--table", metavar="TABLE", help="Only of this table.")]
OfRun = Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only of this run.")]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="T", help="From then on: an age (90d), a date, ISO 8601 with a zone, or epoch ms."),
]
Noted = Annotated[
    str | None,
    typer.Option("--end", metavar="N:HASH", help="An end that was shown before: it must still be in the log."),
]
_NOTE = "note the end elsewhere: `firnline audit verify --end N:HASH` then shows whether entries were cut off"
_NO_KEY = "without FIRNLINE_RECORDS_KEY, one who may write there could write the whole log again"


def register(app: typer.Typer) -> None:
    app.add_typer(audit_app, name="audit")


@audit_app.command("show")
def show(
    table: OfTable = None,
    run: OfRun = None,
    since: Since = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Show what was done to tables, by whom and when: every stage before it happened, and its outcome. Changes
    nothing.
    """
    from firnline.app.observing.auditing import ShownEntries
    from firnline.app.places import open_places

    entries = list(open_places(config).auditing.entries(ShownEntries(table, run, options.since(since))))
    output_for(as_json).show(_page(entries), {"entries": [{**each.said(), "seal": each.seal} for each in entries]})


@audit_app.command("verify")
def verify(noted: Noted = None, config: options.Config = None, as_json: options.Json = False) -> None:
    """Verify that the log is whole: no entry changed, missing, swapped or doubled. Changes nothing."""
    from firnline.app.places import open_places

    found = open_places(config).auditing.verify(noted)
    facts = found.to_json()
    noun = "entry" if found.end.number == 1 else "entries"
    lines = [Line(f"whole: {number(found.end.number)} {noun}")]
    if found.end.number:
        lines.append(Line(f"end: {facts['end']}"))
    hints = [Hint(_NOTE)] if found.sealed_from else [Hint(_NOTE), Hint(_NO_KEY)]
    output_for(as_json).show(Page((*lines, *hints)), facts)


def _page(entries: list[AuditEntry]) -> Page:
    rows = tuple(_row(each) for each in entries)
    return Page((Grid(rows, ("entry", "at (UTC)", "who", "what", "run")),) if rows else (Line("no entries"),))


def _row(entry: AuditEntry) -> tuple[str, ...]:
    news, who = entry.news, entry.who
    what = f"{news['kind']}: {news['to']}" + (f", failed: {news['error']}" if news.get("error") else "")
    return str(entry.number), _second(news["at"]), f"{who['user']}@{who['host']}", what, news["run"]


def _second(instant: str) -> str:
    """Returns an instant of an entry as tables tell it; one that is none, of a log that was tampered with, as it is."""
    return instant[:19].replace("T", " ")
