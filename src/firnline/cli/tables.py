"""`firnline tables`: what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.terminal import options
from firnline.cli.terminal.output import Output, exit_code_of, output_for
from firnline.plans.pages import Block, Grid, Hint, Line, Page

if TYPE_CHECKING:
    from firnline.lake import Lake
    from firnline.ports.catalogs import TableName

_PLAN = "`firnline plan TABLE` shows what a run would free"
_CONFIGURE = "catalogs come from PyIceberg's configuration: .pyiceberg.yaml or PYICEBERG_CATALOG__NAME__URI"


def register(app: typer.Typer) -> None:
    app.command("tables")(tables)


def tables(
    catalog: Annotated[
        str | None,
        typer.Argument(metavar="[CATALOG]", help="Only this catalog, or a Paimon warehouse by its location."),
    ] = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> int:
    """List the tables of every configured catalog."""
    from firnline.lake import open_lake

    lake, output = open_lake(config), output_for(as_json)
    names, code = every_table(lake, output) if catalog is None else (lake.tables(catalog), 0)
    shown = [str(name) for name in names]
    output.show(_page(shown), {"tables": shown})
    return code


def every_table(lake: Lake, output: Output) -> tuple[list[TableName], int]:
    """Returns the tables of every catalog that can be read, and the exit code of the first that cannot.

    Trouble with one catalog is said and does not hide the others.
    """
    names, unread = lake.places.catalogs.readable()
    for problem in unread.values():
        output.fail(problem)
    return names, exit_code_of(unread.values())


def _page(names: list[str]) -> Page:
    blocks: list[Block] = [Grid(tuple((name,) for name in names))] if names else [Line("no tables")]
    return Page((*blocks, Hint(_PLAN if names else _CONFIGURE)))
