"""Writes docs/reference/cli.md from the commands themselves; with --check, only says whether it is current."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer.main

from firnline.cli.main import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"
HEAD = """\
# Command line reference

Made from the commands by `python scripts/cli_reference.py`; a test fails when it is not current.

Results go to stdout, everything else to stderr. With `--json` a result is one JSON document and so is an error
([JSON output](json.md)). What each exit code means: [Exit codes](exit-codes.md). Where settings come from:
[Configuration](configuration.md). Durations, shares and patterns: [Policy reference](policy.md).

TABLE is `CATALOG.NAMESPACE.NAME` (the catalog may be left out where only one is configured), or a location: anything
with a `/` in it. A part that holds a dot, a slash, a quote, or one of `@*?[` stands in double quotes:
`lake.sales."a.b"`; an empty namespace is `lake."".t`. Without quotes such a name is found too, if only one table can
be meant and it is no pattern. RUN is `TABLE@STAMP`, as `firnline runs` shows it.
"""


def commands(group: Any, path: str = "firnline") -> Iterator[tuple[str, Any]]:
    """Yields every command that does something, with the words that call it, in the order of `--help`."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def page() -> str:
    sections = [section(path, command) for path, command in commands(typer.main.get_command(app))]
    return "\n".join([HEAD, *sections])


def section(path: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    lines = [f"## {path}", "", command.help or "", "", "```", usage(path, arguments), "```", ""]
    if arguments:
        lines += table("argument", ((shown(each), said(each)) for each in arguments))
    lines += table("option", ((spelled(each), said(each)) for each in options))
    return "\n".join(lines)


def table(heading: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    """Returns the lines of a table; a bar inside a cell would end it."""
    cells = [(name.replace("|", "\\|"), text.replace("|", "\\|")) for name, text in rows]
    return [f"| {heading} | |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in cells), ""]


def usage(path: str, arguments: list[Any]) -> str:
    return " ".join(
        [path, *(shown(each) if each.required else optional(shown(each)) for each in arguments), "[OPTIONS]"]
    )


def optional(name: str) -> str:
    return name if name.startswith("[") else f"[{name}]"


def shown(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def spelled(option: Any) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    takes = "" if option.is_flag else f" {option.metavar or 'TEXT'}"
    return names + takes


def said(parameter: Any) -> str:
    """Returns the help with the default and the environment variable, where there is one."""
    notes = [f"Default: `{parameter.default}`."] if isinstance(parameter.default, str) else []
    notes += [f"Environment: `{parameter.envvar}`."] if parameter.envvar else []
    return " ".join([parameter.help or "", *notes]).strip()


def main() -> int:
    if "--check" in sys.argv[1:]:
        current = PAGE.is_file() and PAGE.read_text() == page()
        print("current" if current else "out of date: run python scripts/cli_reference.py", file=sys.stderr)
        return 0 if current else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
