"""`firnline tables`: what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.terminal import options
from firnline.cli.terminal.output import Output, exit_code_of, output_for
from firnline.plans.pages import Grid, Hint, Line, Page

if TYPE_CHECKING:
    from firnline.lake import Lake
    from firnline.ports.catalogs import TableName

_PLAN = "`firnline plan TABLE` shows what a run would free"


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
    page = _page(shown) if shown else _empty(list(lake.catalogs) if catalog is None else [catalog], is_whole=not code)
    output.show(page, {"tables": shown})
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
    return Page((Grid(tuple((name,) for name in names)), Hint(_PLAN)))


def _empty(catalogs: list[str], *, is_whole: bool) -> Page:
    """Returns that there is no table, and where that is known: nobody can say it of a catalog that cannot be read."""
    from firnline.ports.catalogs import HOW_TO_CONFIGURE

    if not catalogs:
        return Page((Line("no tables: no catalog is configured"), Hint(HOW_TO_CONFIGURE)))
    where = f"{'catalog' if len(catalogs) == 1 else 'catalogs'} {', '.join(catalogs)}"
    return Page((Line(f"no tables in {where}" if is_whole else "no tables in what could be read"),))
