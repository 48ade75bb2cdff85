"""`firnline help`: the same as `--help`, for those who ask in words; and whose help a mistake should point at."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated, Any

import typer

from firnline.cli.terminal import completing
from firnline.cli.terminal.saying import written
from firnline.errors import UsageError


def register(app: typer.Typer) -> None:
    app.command("help")(show_help)


def show_help(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND]...",
            help="The command's words: plan, or policy show.",
            autocompletion=completing.commands,
        ),
    ] = None,
) -> None:
    """Show what firnline can do, or how one command is used: the same as its --help."""
    asked: Any = context.parent
    for name in names or ():
        asked = _inner(asked, name)
    with written():
        print(asked.get_help())


def _inner(context: Any, name: str) -> Any:
    """Returns the context of a command inside of a group. Raises UsageError if there is none of that name."""
    known = getattr(context.command, "commands", {})
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"`{context.command_path} --help` lists them"
        raise UsageError(f"no such command: {context.command_path} {name}", hint=hint)
    return typer.Context(known[name], parent=context, info_name=name)


def own_help(problem: Any, command: Any, words: Sequence[str]) -> str:
    """Returns a hint that names the help of the very command that was misused. Where the problem does not tell which
    that was, the words do.
    """
    path = getattr(getattr(problem, "ctx", None), "command_path", None) or _path(command, words)
    return f"`{path} --help` shows what it takes"


def _path(command: Any, words: Sequence[str]) -> str:
    path = ["firnline"]
    for word in words:
        inner = getattr(command, "commands", {}).get(word)
        if inner is not None:
            path, command = [*path, word], inner
    return " ".join(path)
