"""`firnline tables`: what there is."""

from __future__ import annotations

from typing import Annotated

import typer

from firnline.cli import options
from firnline.cli.output import output_for
from firnline.plans.pages import Block, Grid, Hint, Line, Page

_PLAN = "`firnline plan TABLE` shows what a run would free"
_CONFIGURE = "catalogs come from PyIceberg's configuration: .pyiceberg.yaml or PYICEBERG_CATALOG__NAME__URI"


def register(app: typer.Typer) -> None:
    app.command("tables")(tables)


def tables(
    catalog: Annotated[str | None, typer.Argument(metavar="[CATALOG]", help="Only this catalog.")] = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """List the tables of every configured catalog."""
    from firnline.app import open_lake

    names = [str(name) for name in open_lake(config).tables(catalog)]
    output_for(as_json).show(_page(names), {"tables": names})


def _page(names: list[str]) -> Page:
    blocks: list[Block] = [Grid(tuple((name,) for name in names))] if names else [Line("no tables")]
    return Page((*blocks, Hint(_PLAN if names else _CONFIGURE)))
