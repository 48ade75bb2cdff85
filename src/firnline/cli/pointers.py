"""`firnline pointers`: files beside tables that name their current metadata, for readers without a catalog."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.terminal import options
from firnline.cli.terminal.output import Output, exit_code_of, output_for
from firnline.model.snapshots import MAIN
from firnline.model.times import SECOND_MS, format_duration, parse_duration, tell_instant
from firnline.plans.pages import Block, Grid, Hint, Line, Page, counted, shortened

if TYPE_CHECKING:
    from firnline.app.pointers.verbs import OpenedPath, SyncedTable
    from firnline.ops.pointers.truth import Behind

pointers_app = typer.Typer(help="Publish and read pointers to tables' current metadata.", no_args_is_help=True)
_ASK = "no policy asks for pointers: write `pointers: identifier` into firnline.yaml, for all or for a table"


def register(app: typer.Typer) -> None:
    app.add_typer(pointers_app, name="pointers")


@pointers_app.command("sync")
def sync(
    tables: options.TablesArg = None,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Replace pointers that were published from another catalog.")
    ] = False,
    config: options.Config = None,
    as_json: options.Json = False,
) -> int:
    """Bring the pointers of TABLES, or of every table, to what their catalogs say, and tell what was stale."""
    from firnline.lake import open_lake

    done = open_lake(config).pointers.sync(tables or None, take_over=take_over)
    output = output_for(as_json)
    output.show(Page(tuple(_synced(done))), {"tables": [each.to_json() for each in done]})
    problems = [problem for each in done for problem in each.problems]
    for problem in problems:
        output.fail(problem)
    return exit_code_of(problems)


def _synced(done: Sequence[SyncedTable]) -> Iterator[Block]:
    rows = [row for each in done for row in _rows(each)]
    if not rows:
        yield Line("no pointers")
        yield Hint(_ASK)
        return
    yield Grid(tuple(rows), ("table", "branch", "was behind", "pointer", "outcome"))
    stale = sum(pointer.was_behind is not None for each in done for pointer in each.pointers)
    yield Line(f"{counted(len(done), 'table')}, {counted(stale, 'pointer')} stale")


def _rows(synced: SyncedTable) -> Iterator[tuple[str, ...]]:
    if synced.problem is not None:
        yield synced.table, "", "", "", f"failed: {shortened(synced.problem.message)}"
    for each in synced.pointers:
        late = "" if each.was_behind is None else _behind(each.was_behind)
        why = "" if each.problem is None else f": {shortened(each.problem.message)}"
        yield synced.table, each.branch, late, each.key.rpartition("/")[2], each.outcome + why


def _behind(late: Behind) -> str:
    commits = "more commits than its log tells" if late.commits is None else counted(late.commits, "commit")
    return f"{commits}, since {tell_instant(late.since_ms)}"


@pointers_app.command("watch")
def watch(
    every: Annotated[str, typer.Option("--every", metavar="DURATION", help="How long to wait between looks.")] = "10s",
    looks: Annotated[int | None, typer.Option("--looks", help="Stop after so many looks.")] = None,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Publish whatever moves on in the configured catalogs, until Ctrl-C: one query for each SQL catalog and look."""
    from firnline.lake import open_lake

    pause_s, watching, output = (
        parse_duration(every) / SECOND_MS,
        open_lake(config).pointers.watch(),
        output_for(as_json),
    )
    for number in count(1):
        for each in watching.look():
            _tell(output, each, as_json)
        for problem in watching.unread.values():
            output.fail(problem)
        if number == looks:
            return
        time.sleep(pause_s)


@pointers_app.command("listen")
def listen(
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port to listen at.")] = 8181,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Publish tables that a catalog's messages name, until Ctrl-C; each brings FIRNLINE_LISTEN_TOKEN if that is set."""
    from firnline.app.pointers.listener import listener
    from firnline.lake import open_lake

    output, token = output_for(as_json), os.environ.get("FIRNLINE_LISTEN_TOKEN")
    server = listener(open_lake(config).pointers, host, port, token, lambda done: _tell(output, done, as_json))
    at = f"http://{host}:{server.server_address[1]}"
    output.show(Page((Line(f"listening at {at}"),)), {"listening": at})
    with server:
        server.serve_forever()


def _tell(output: Output, done: SyncedTable, as_json: bool) -> None:
    """Shows one table at once; as JSON one line each, so that a program can follow."""
    if as_json:
        print(json.dumps(done.to_json()), flush=True)
        return
    output.show(Page((Grid(tuple(_rows(done))),)), done.to_json())


@pointers_app.command("resolve")
def resolve(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A table's folder, or a pointer's own file.")],
    table: Annotated[str | None, typer.Option("--table", help="The table, as NAMESPACE.NAME.")] = None,
    uuid: Annotated[str | None, typer.Option("--uuid", help="The table, by its uuid.")] = None,
    branch: Annotated[str, typer.Option("--branch", help="The branch.")] = MAIN,
    outside: Annotated[
        bool, typer.Option("--allow-outside", help="Also if the metadata lies outside of PATH.")
    ] = False,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Print the current metadata file of the table at PATH, by its pointer: no catalog is needed."""
    from firnline.lake import open_lake

    found = open_lake(config).pointers.open_path(path, table=table, uuid=uuid, branch=branch, allow_outside=outside)
    output_for(as_json).show(_resolved(found), found.to_json())


def _resolved(found: OpenedPath) -> Page:
    pointer = found.found.pointer
    rows = [
        ("table", pointer.table_identifier),
        ("uuid", pointer.guid),
        ("branch", pointer.branch),
        ("ordinal", pointer.ordinal),
        ("age", format_duration(found.age_ms // SECOND_MS * SECOND_MS)),
        ("catalog", "not asked" if found.catalog is None else found.catalog),
        ("behind", _standing(found)),
        ("pointer", found.found.key),
        *(("by way of", each) for each in found.found.followed),
        ("metadata", found.metadata),
    ]
    return Page((Grid(tuple(rows)),))


def _standing(found: OpenedPath) -> str:
    if found.catalog is None:
        return "not known without its catalog"
    return "not behind" if found.behind is None else _behind(found.behind)
