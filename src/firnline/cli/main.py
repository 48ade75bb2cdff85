"""The entry point: commands are gathered here, and every error becomes its exit code."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from contextvars import copy_context
from io import TextIOWrapper
from typing import Annotated

import typer

from firnline import __version__
from firnline.app.observing.watching import end_watch
from firnline.cli import (
    check,
    doctor,
    erase,
    expire,
    history,
    iam,
    marks,
    orphans,
    plan,
    pointers,
    policy,
    runs,
    sql,
    tables,
    tiers,
    why,
    worker,
)
from firnline.cli.observing import audit
from firnline.cli.terminal import completing, helping
from firnline.cli.terminal.manners import QUIET_HELP, VERBOSE_HELP, is_verbose, settle_manner, talk
from firnline.cli.terminal.opening import left_undone
from firnline.cli.terminal.output import Output, output_for
from firnline.cli.terminal.process import leave_whole, leaving, listen_again, settle_in
from firnline.cli.terminal.progress import clean_line
from firnline.errors import FirnlineError, Interrupted, UsageError
from firnline.ports.progress import SPARK_IS_HEARD
from firnline.settings import LOG, log_form, logs_json

app = typer.Typer(
    name="firnline",
    help="Keep the history that matters and safely remove the rest: snapshots of Iceberg, Paimon and Icechunk.",
    epilog="Begin with `firnline tables` and `firnline plan TABLE`: both change nothing.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
tables.register(app)
plan.register(app)
why.register(app)
policy.register(app)
expire.register(app)
runs.register(app)
check.register(app)
history.register(app)
sql.register(app)
orphans.register(app)
marks.register(app)
pointers.register(app)
tiers.register(app)
erase.register(app)
audit.register(app)
iam.register(app)
doctor.register(app)
worker.register(app)
helping.register(app)
talk(app)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    log: Annotated[
        str | None,
        typer.Option(
            "--log",
            metavar="FORM",
            help="json: every stage as a line of JSON on stderr; or text.",
            autocompletion=completing.values("json", "text"),
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help=QUIET_HELP)] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help=VERBOSE_HELP)] = False,
) -> None:
    settle_manner(quiet, verbose)
    LOG.set(log)
    log_form()
    if show:
        print(__version__)


def main(arguments: list[str] | None = None) -> None:
    """Runs one command and exits with its code."""
    if arguments is None:
        leave_whole()  # a caller with arguments of its own has a process of its own, and goes on
    given = sys.argv[1:] if arguments is None else arguments
    listen_again()
    settle_in()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name may have letters that the terminal does not
    sys.exit(leaving(run(given)))


def run(arguments: list[str]) -> int:
    """Returns the exit code of one command."""
    try:
        return copy_context().run(_run, arguments)  # what `--log` says ends with the command
    except BrokenPipeError:
        return _unheard()
    finally:
        with suppress(BrokenPipeError):
            clean_line()
        end_watch()


def _unheard() -> int:
    """Returns the exit code of a command whose reader went away, as `head` does: there is nobody left to tell. What is
    still in a buffer would fail once more while Python shuts down.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
    return 1


def _run(arguments: list[str]) -> int:
    SPARK_IS_HEARD.set(is_verbose)
    try:
        code = int(app(arguments, prog_name="firnline", standalone_mode=False) or 0)
        sys.stdout.flush()  # a reader that went away shows here, not while Python shuts down
        return _interrupted("--json" in arguments) if code == Interrupted.exit_code else code
    except FirnlineError as problem:
        is_over = isinstance(problem, Interrupted) and not left_undone()
        output_for("--json" in arguments).fail(Interrupted(problem.message) if is_over else problem)
        return problem.exit_code
    except typer.TyperException as problem:
        return _misused(problem, output_for("--json" in arguments))
    except typer.Abort as aborted:
        return _aborted(aborted, "--json" in arguments)
    except KeyboardInterrupt:
        return _interrupted("--json" in arguments)


def _aborted(aborted: typer.Abort, as_json: bool) -> int:
    """Returns the exit code where the answer to a question was no. A line that broke, such as to a JVM that died, is no
    answer: much may have been done.
    """
    if isinstance(aborted.__cause__, EOFError):
        return _interrupted(as_json)
    print("nothing was changed", file=sys.stderr)
    return Interrupted.exit_code


def _interrupted(as_json: bool) -> int:
    """Returns the exit code of a command that was stopped. Typer makes a plain number of Ctrl-C."""
    hint = "`firnline resume` goes on with what was begun" if left_undone() else ""
    if as_json or logs_json():
        output_for(as_json).fail(Interrupted("interrupted", hint=hint))
    else:
        clean_line()
        print("\ninterrupted" + (f"; {hint}" if hint else ""), file=sys.stderr)
    return Interrupted.exit_code


def _misused(problem: typer.TyperException, output: Output) -> int:
    """Returns the exit code of a command that makes no sense. One without any argument gets its help instead."""
    message = problem.format_message()
    if message.startswith("Usage: "):
        print(message, file=sys.stderr)  # its own help
    else:
        output.fail(UsageError(message, hint=helping.own_help(problem)))
    return UsageError.exit_code
