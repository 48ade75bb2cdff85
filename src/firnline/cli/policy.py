"""`firnline policy`: what is in force, and where each value was written."""

from __future__ import annotations

import typer

from firnline.cli.terminal import options
from firnline.cli.terminal.output import output_for
from firnline.plans.in_force import PolicyInForce
from firnline.plans.pages import Page
from firnline.plans.written_policy import written_page, written_rules
from firnline.settings import read_config

policy_app = typer.Typer(help="Show and check retention policies.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(policy_app, name="policy")


@policy_app.command("show")
def show(table: options.TableArg, config: options.Config = None, as_json: options.Json = False) -> None:
    """Show the policy in force on TABLE: each value, where it was written and what it replaced."""
    from firnline.lake import open_lake

    state, effective = open_lake(config).policy(table)
    found = PolicyInForce(state.table, effective.policy.describe(state.native), effective)
    output_for(as_json).show(found.page(), found.to_json())


@policy_app.command("check")
def check(config: options.Config = None, as_json: options.Json = False) -> None:
    """Read the policy file and say what is wrong with it, by line and key; names must be of the configured catalogs."""
    section = read_config(config)
    if section.inside:
        from firnline.app.places import places_of

        places_of(section).catalogs.refuse_unknown_names(section)
    output_for(as_json).show(written_page(section), {"levels": [list(row) for row in written_rules(section)]})


@policy_app.command("schema")
def schema(as_json: options.Json = False) -> None:
    """Print the JSON schema of firnline.yaml, by which editors complete and check it; JSON in any case."""
    from firnline.policy.written.schema import policy_schema

    output_for(True).show(Page(()), policy_schema())
