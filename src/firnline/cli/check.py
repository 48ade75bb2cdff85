"""`firnline check`: is every needed file there, and what does a store really do?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import typer

from firnline.app.many import AT_ONCE
from firnline.cli.terminal import options
from firnline.cli.terminal.opening import looking_lake, several_of
from firnline.cli.terminal.output import exit_code_of, output_for
from firnline.plans.answers import TableAnswer, counts_of, facts_of, what_failed
from firnline.plans.pages import Block, Grid, Line, Page, counted, number, shortened, size

if TYPE_CHECKING:
    from firnline.ops.looking.check import Checked
    from firnline.ports.probe import StoreVerdicts

_UNSOUND = 1
_STORE_AND_URI = 2


def register(app: typer.Typer) -> None:
    app.command("check")(check)


def check(
    tables: options.TablesArg = None,
    every: options.AllTables = False,
    at_once: options.AtOnce = AT_ONCE,
    trust: options.TrustSnapshot = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Look whether every file that each snapshot of TABLE needs exists, with its size, and whether the table still has
    the schemas and partition specs to read them with; where snapshots' times can be held against others, also whether
    they can be right. Exit code 1 if not. Several tables get one line each.

    `firnline check store URI` finds out what the store at a location really does: what is permitted, whether its
    conditional writes and deletes can be trusted, its clock, versions and locks. It writes a few small objects of its
    own under URI/_firnline/probe and removes them again. Exit code 1 if no run could work there.
    """
    if tables is not None and len(tables) == _STORE_AND_URI and tables[0] == "store":
        return _check_store(tables[1], config, as_json)
    lake = looking_lake(config, engine, as_json, trust)
    one = options.the_one(tables, every)
    if one is None:
        return _show_all(list(several_of(lake, None if every else tables, at_once).check()), as_json)
    checked = lake.check(one)

    from firnline.ops.looking.pages import check_page

    output_for(as_json).show(check_page(checked), checked.to_json())
    return 0 if checked.sound else _UNSOUND


def _show_all(answers: Sequence[TableAnswer[Checked]], as_json: bool) -> int:
    """Shows what was found of each table, faults first. Returns the exit code of the first table that could not be
    looked at; else 1 if one is not sound.
    """
    listed = sorted(answers, key=lambda each: (each.value is not None, each.value is None or each.value.sound))
    facts = {"tables": [facts_of(each) for each in listed], "sums": _sums(listed)}
    output_for(as_json).show(Page(tuple(_blocks_of_all(listed))), facts)
    code = exit_code_of(each.problem for each in answers)
    return code or (0 if all(each.value.sound for each in answers if each.value is not None) else _UNSOUND)


def _sums(answers: Sequence[TableAnswer[Checked]]) -> dict[str, int]:
    found = [each.value for each in answers if each.value is not None]
    return {
        **counts_of(answers),
        "unsound": sum(not each.sound for each in found),
        "files": sum(each.presence.looked_at for each in found),
        "bytes": sum(each.presence.bytes for each in found),
    }


def _blocks_of_all(answers: Sequence[TableAnswer[Checked]]) -> Iterator[Block]:
    sums = _sums(answers)
    rows = [_row(each) for each in answers]
    rows.append((counted(sums["tables"], "table"), "", number(sums["files"]), size(sums["bytes"]), ""))
    yield Grid(tuple(rows), ("table", "snapshots", "files", "bytes", ""), right=frozenset({1, 2, 3}))
    yield from what_failed("not looked at: {}", sums["failed"], sums["unread_catalogs"])
    if sums["unsound"]:
        yield Line(f"not as they say: {counted(sums['unsound'], 'table')}")
    elif sums["failed"] < sums["tables"]:
        is_whole = not sums["failed"] and not sums["unread_catalogs"]
        yield Line("every file is there" if is_whole else "of the tables that were looked at, every file is there")


def _row(answer: TableAnswer[Checked]) -> tuple[str, ...]:
    if answer.value is None:
        return (answer.table, "", "", "", "" if answer.problem is None else shortened(answer.problem.message))
    found = answer.value
    said = "" if found.sound else f"{counted(found.presence.faults, 'fault')}, such as {found.presence.listed[0].path}"
    figures = (number(found.snapshots), number(found.presence.looked_at), size(found.presence.bytes))
    return (answer.table, *figures, said)


def _check_store(uri: str, config: str | None, as_json: bool) -> int:
    from firnline.lake import open_lake
    from firnline.ops.table.context import unfit

    found = open_lake(config).check_store(uri)
    fit = not unfit(found, deletes=True)
    output_for(as_json).show(Page(tuple(_store_blocks(found, fit))), {**found.to_json(), "fit": fit})
    return 0 if fit else _UNSOUND


def _store_blocks(found: StoreVerdicts, fit: bool) -> Iterator[Block]:
    yield Line(found.place)
    yield Grid(tuple((name, each.verdict.value, each.evidence) for name, each in found.findings().items()))
    yield Grid(tuple((what, path) for what, path in found.paths().items()))
    for warning in found.surroundings.warnings():
        yield Line(f"note: {warning}")
    yield Line("runs can work here" if fit else "no run could work here")
