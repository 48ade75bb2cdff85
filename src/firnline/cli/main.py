"""The entry point: commands are gathered here, and every error becomes its exit code."""

from __future__ import annotations

import os
import sys

import click
import typer

from firnline.cli import check, marks, plan, policy, runs, tables, why
from firnline.cli.output import output_for
from firnline.errors import FirnlineError, UsageError

INTERRUPTED = 130

app = typer.Typer(
    name="firnline",
    help="Keep the history that matters and safely remove the rest: Iceberg snapshots, seen before they are touched.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
tables.register(app)
plan.register(app)
why.register(app)
policy.register(app)
runs.register(app)
check.register(app)
marks.register(app)


def main(arguments: list[str] | None = None) -> None:
    """Runs one command and exits with its code."""
    given = sys.argv[1:] if arguments is None else arguments
    sys.exit(run(given))


def run(arguments: list[str]) -> int:
    """Returns the exit code of one command."""
    output = output_for("--json" in arguments)
    try:
        return int(app(arguments, standalone_mode=False) or 0)
    except FirnlineError as problem:
        output.fail(problem)
        return problem.exit_code
    except click.exceptions.NoArgsIsHelpError as asked:
        asked.show()
        return UsageError.exit_code
    except click.ClickException as problem:
        output.fail(UsageError(problem.format_message(), hint="`firnline --help` shows the commands and their options"))
        return UsageError.exit_code
    except (click.Abort, KeyboardInterrupt):
        print("\ninterrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our stdout went away, as `firnline … | head` does; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
