"""`firnline report`: all that there is to see of a table or a run, in one file that can be sent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from firnline.cli.terminal import completing, options
from firnline.cli.terminal.opening import looking_lake
from firnline.cli.terminal.output import output_for
from firnline.errors import UsageError
from firnline.journal.layout import names_run
from firnline.plans.pages import Line, Page

Target = Annotated[
    str,
    typer.Argument(
        metavar="RUN|TABLE", help="A run, as TABLE@STAMP or by its stamp; or a table.",
        autocompletion=completing.runs_and_tables,
    ),
]  # fmt: skip
Html = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="OUT", help="Write one file that needs nothing else: no script, nothing from outside."
    ),
]


def register(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    target: Target,
    html: Html = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> None:
    """Write a report of RUN or TABLE, for an auditor. Of a table: its graph before and after, plan, policy, holds,
    tiers, runs and history; of a run: its plan, stages, outcomes and who did what. Changes nothing.
    """
    from firnline.web.facts.runs import run_report
    from firnline.web.facts.tables import table_report
    from firnline.web.html.runs import run_document
    from firnline.web.html.tables import table_document

    if html is None and not as_json:
        raise UsageError(
            "nothing says where the report goes", hint="`--html OUT.html` writes it, `--json` prints its facts"
        )
    lake = looking_lake(config, engine, as_json)
    if names_run(target):
        of_run = run_report(lake, target)
        facts, text = of_run.to_json(), "" if html is None else run_document(of_run)
    else:
        of_table = table_report(lake, target)
        facts, text = of_table.to_json(), "" if html is None else table_document(of_table)
    if html is not None:
        _write(html, text)
    output_for(as_json).show(Page((Line(f"wrote {html}"),)), facts)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise UsageError(f"{path} cannot be written: {problem.strerror}", hint="name another place") from problem
