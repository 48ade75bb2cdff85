"""How much a command says: -q and -v, which every command understands, before its name or after it; and its name."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from firnline.cli.terminal.saying import Written
from firnline.errors import UsageError

QUIET, PLAIN, VERBOSE = -1, 0, 1
MANNER: ContextVar[int] = ContextVar("manner", default=PLAIN)
"""What -q or -v says, for the time of one command."""

_COMMAND: ContextVar[str] = ContextVar("command", default="firnline")

QUIET_HELP = "Say only the result: no progress, no hints."
VERBOSE_HELP = "Say more: whole lists, and on stderr what each step did and how long it took."


def is_quiet() -> bool:
    return MANNER.get() == QUIET


def is_verbose() -> bool:
    return MANNER.get() == VERBOSE


def command_path() -> str:
    """Returns the words that called this command, such as `firnline policy show`."""
    return _COMMAND.get()


def settle_manner(quiet: bool, verbose: bool) -> None:
    """Notes how much is to be said. Raises UsageError for both at once."""
    asked = QUIET if quiet else VERBOSE if verbose else PLAIN
    if (quiet and verbose) or (asked and MANNER.get() == -asked):
        raise UsageError("-q and -v do not go together", hint="-q says less, -v says more")
    if asked:
        MANNER.set(asked)


class TalkingCommand(Written, TyperCommand):
    """A command that also takes -q and -v."""

    def __init__(self, name: str | None, **settings: Any) -> None:
        super().__init__(name, **settings)
        self.params += [
            _flag(["-q", "--quiet"], QUIET_HELP, lambda said: settle_manner(said, False)),
            _flag(["-v", "--verbose"], VERBOSE_HELP, lambda said: settle_manner(False, said)),
        ]

    def invoke(self, ctx: Any) -> Any:
        _COMMAND.set(ctx.command_path)
        return super().invoke(ctx)


def _flag(names: list[str], text: str, note: Any) -> TyperOption:
    def noted(context: Any, parameter: Any, said: bool) -> None:
        note(said)

    return TyperOption(
        param_decls=names, is_flag=True, default=False, expose_value=False, is_eager=True, help=text, callback=noted
    )


class TellingGroup(Written, TyperGroup):
    """A group that lists its commands by whole sentences, however wide the terminal is."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, first_sentence(each.help or "")) for name, each in self.commands.items() if not each.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def first_sentence(text: str) -> str:
    """Returns the first sentence of a help text, with its full stop."""
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".") + "." if paragraph else ""


def talk(app: typer.Typer) -> None:
    """Makes every command of an app, and of its groups, take -q and -v."""
    for command in app.registered_commands:
        command.cls = TalkingCommand
    for group in app.registered_groups:
        group.cls = TellingGroup
        if group.typer_instance is not None:
            talk(group.typer_instance)
