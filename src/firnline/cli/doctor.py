"""`firnline doctor`: what is configured, reachable and permitted, and what to do about the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.terminal import options
from firnline.cli.terminal.output import output_for
from firnline.errors import FirnlineError
from firnline.policy.parse import Section

if TYPE_CHECKING:
    from firnline.lake import Lake

_UNWELL = 1
_WHAT = "A catalog, or a table: its store is then tried with objects that are removed again."


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(
    what: Annotated[str | None, typer.Argument(metavar="[TABLE|CATALOG]", help=_WHAT)] = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Look at everything a run would need and say what to do about each problem. Exit code 1 if there is any."""
    found = _lake(config, engine).doctor(what)

    from firnline.ops.looking.pages import doctor_page

    output_for(as_json).show(doctor_page(found), found.to_json())
    return 0 if found.is_well else _UNWELL


def _lake(config: str | None, engine: str) -> Lake:
    """Returns the lake; one without a configuration where that cannot be read: the doctor says so then."""
    from firnline.app.places import places_of
    from firnline.lake import Lake, open_lake

    try:
        return open_lake(config, engine=engine)
    except FirnlineError:
        return Lake(places_of(Section(), engine), config)
