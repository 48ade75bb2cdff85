"""`firnline policy`: what is in force, and where each value was written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from firnline.cli.terminal import options
from firnline.cli.terminal.output import output_for
from firnline.model.times import format_duration
from firnline.plans.pages import Block, Grid, Hint, Line, Page, size
from firnline.policy.inherit import Effective
from firnline.policy.parse import Section
from firnline.policy.policy import Setting
from firnline.settings import read_config

policy_app = typer.Typer(help="Show and check retention policies.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(policy_app, name="policy")


@policy_app.command("show")
def show(table: options.TableArg, config: options.Config = None, as_json: options.Json = False) -> None:
    """Show the policy in force on TABLE: each value, where it was written and what it replaced."""
    from firnline.lake import open_lake

    state, effective = open_lake(config).policy(table)
    rows = [*_settings(effective)]
    facts = {"table": state.table, "native": effective.policy.is_native, "settings": [_facts(*row) for row in rows]}
    heading = Line(f"{state.table}: {effective.policy.describe(state.native)}")
    grid = Grid(tuple(_row(*row) for row in rows), ("setting", "value", "written in", "replaces"))
    output_for(as_json).show(Page((heading, grid)), facts)


@policy_app.command("check")
def check(config: options.Config = None, as_json: options.Json = False) -> None:
    """Read the policy file and say what is wrong with it, by line and key; names must be of the configured catalogs."""
    section = read_config(config)
    if section.inside:
        from firnline.app.places import places_of

        places_of(section).catalogs.refuse_unknown_names(section)
    levels = [*_levels(section, "")]
    blocks: list[Block] = [Line("the policy is sound"), Grid(tuple(levels))]
    if not levels:
        blocks = [Line("no policy is written")]
    hint = Hint("without one, the table's own retention counts")
    output_for(as_json).show(Page((*blocks, *(() if levels else (hint,)))), {"levels": [list(row) for row in levels]})


@policy_app.command("schema")
def schema(as_json: options.Json = False) -> None:
    """Print the JSON schema of firnline.yaml, by which editors complete and check it; JSON in any case."""
    from firnline.policy.written.schema import policy_schema

    output_for(True).show(Page(()), policy_schema())


def _settings(effective: Effective) -> Iterator[tuple[str, Setting[Any]]]:
    yield from ((f"keep {name}", setting) for name, setting in effective.keep.items())
    yield "grace", effective.grace
    yield "blast-radius", effective.blast_radius
    yield "approve-above", effective.approve_above
    yield "engine", effective.engine
    yield "include-outside", effective.include_outside
    yield "history", effective.history
    yield "records", effective.records
    yield "sharing", effective.sharing
    yield "shared-with", effective.shared_with
    yield "archive", effective.archive
    yield "pointers", effective.pointers
    yield "pointer-branches", effective.pointer_branches
    yield "pointer-links", effective.pointer_links
    yield "version-hint", effective.version_hint
    yield "readers", effective.readers
    yield "readers-max-age", effective.readers_max_age
    yield "readers-from", effective.readers_from


def _row(name: str, setting: Setting[Any]) -> tuple[str, ...]:
    before = ", ".join(f"{_said(name, each.value)} ({each.source})" for each in setting.overridden())
    return (name, _said(name, setting.value), str(setting.source), before)


def _facts(name: str, setting: Setting[Any]) -> dict[str, Any]:
    overrides = [{"value": _said(name, each.value), "source": str(each.source)} for each in setting.overridden()]
    return {"name": name, "value": _said(name, setting.value), "source": str(setting.source), "overrides": overrides}


def _said(name: str, value: Any) -> str:
    if value is None:
        return {"records": "in the table's folder", "readers-max-age": "forever"}.get(name, "off")
    if name in ("grace", "pointer-links", "readers-max-age"):
        return format_duration(value)
    if name in ("shared-with", "pointer-branches", "readers"):
        return ", ".join(value) or "none"
    if name == "approve-above":
        return size(value)
    return f"{value:.0%}" if name == "blast-radius" else str(value)


def _levels(section: Section, path: str) -> Iterator[tuple[str, str]]:
    rules = ", ".join(str(setting.value or f"{name} off") for name, setting in section.keep.items())
    if rules:
        yield path or "global", f"keep {rules}"
    for name, inner in section.inside.items():
        yield from _levels(inner, f"{path}.{name}".lstrip("."))
