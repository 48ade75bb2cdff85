"""The entry point: commands are gathered here, and every error becomes its exit code."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from contextvars import copy_context
from io import TextIOWrapper
from typing import Annotated

import typer
from typer.main import get_command

from firnline import __version__
from firnline.app.observing.watching import end_watch
from firnline.callers import flags_are_typed
from firnline.cli.terminal import completing, helping
from firnline.cli.terminal.gathering import Listed, gathered
from firnline.cli.terminal.manners import QUIET_HELP, VERBOSE_HELP, is_verbose, settle_manner
from firnline.cli.terminal.opening import left_undone, what_was_stopped
from firnline.cli.terminal.output import output_for
from firnline.cli.terminal.process import leave_at_once, leave_whole, leaving, listen_again, settle_in
from firnline.cli.terminal.progress import clean_line
from firnline.cli.terminal.saying import written
from firnline.errors import FirnlineError, Interrupted, StoreError, UsageError
from firnline.model.names import refuse_no_text
from firnline.ports.progress import SPARK_IS_HEARD
from firnline.settings import LOG, log_form, logs_json

_GOES_ON = "`firnline resume` goes on with what was begun"

COMMANDS = (
    Listed("tables", "firnline.cli.tables", "List the tables of every configured catalog."),
    Listed("plan", "firnline.cli.plan", "Show what would expire, what stays and why. Changes nothing."),
    Listed("graph", "firnline.cli.pictures.graph", "Draw a table's snapshots before and after a run. Changes nothing."),
    Listed("why", "firnline.cli.why", "Say what keeps a snapshot, or which snapshots need a file."),
    Listed("expire", "firnline.cli.expire", "Take old snapshots out of a table; their files go after grace."),
    Listed("commit", "firnline.cli.runs", "Commit a saved plan."),
    Listed("approve", "firnline.cli.runs", "Approve a large plan that waits for a person's word."),
    Listed("purge", "firnline.cli.runs", "Delete what committed runs have written down, after grace."),
    Listed("undo", "firnline.cli.runs", "Bring back what a run took out: its snapshots, refs and log."),
    Listed("resume", "firnline.cli.runs", "Finish every run that was begun and may be finished now."),
    Listed("runs", "firnline.cli.runs", "List runs; `runs show RUN` shows one."),
    Listed("check", "firnline.cli.check", "Look whether every file that a table needs exists."),
    Listed("history", "firnline.cli.history", "Show a table day by day, and what expired when."),
    Listed("report", "firnline.cli.pictures.report", "Write all that is seen of a table or a run into one HTML file."),
    Listed("sql", "firnline.cli.sql", "Query tables and their metadata in Spark SQL."),
    Listed("orphans", "firnline.cli.orphans", "Find files that no snapshot of any table needs; purge them."),
    Listed("dropped", "firnline.cli.orphans", "Show folders that look like tables and are in no catalog."),
    Listed("adopt", "firnline.cli.marks", "Write the policy into the table's own retention."),
    Listed("archive", "firnline.cli.tiers", "Hand what a run would expire to the table's tier. Expires nothing."),
    Listed("restore", "firnline.cli.tiers", "Bring a snapshot back from a tier."),
    Listed("tiers", "firnline.cli.tiers", "Show in which tier each snapshot lives, and what that costs."),
    Listed("erase", "firnline.cli.erase", "Take data files out of every snapshot, live and in tiers, and delete them."),
    Listed("iam", "firnline.cli.iam", "Show the least permissions that a command needs."),
    Listed("doctor", "firnline.cli.doctor", "Look at all that a run needs, and say what to do."),
    Listed("worker", "firnline.cli.worker", "Keep every table in policy, in its hours and within its budget."),
    Listed("serve", "firnline.cli.pictures.serve", "Serve a page that shows what goes, why, and what it saves."),
    Listed("help", "firnline.cli.terminal.helping", "Show the help of a command."),
    Listed("policy", "firnline.cli.policy", "Show and check retention policies."),
    Listed("tag", "firnline.cli.marks", "Name snapshots that every engine keeps."),
    Listed("hold", "firnline.cli.marks", "Hold snapshots or whole tables: who, why, until when."),
    Listed("branch", "firnline.cli.marks", "Drop branches, with what only they hold."),
    Listed("pointers", "firnline.cli.pointers", "Publish and read pointers to tables' current metadata."),
    Listed("audit", "firnline.cli.observing.audit", "Show and verify the log of what was done."),
)

app = typer.Typer(
    name="firnline",
    cls=gathered(COMMANDS),
    help="Keep the history that matters and safely remove the rest: snapshots of Iceberg, Paimon and Icechunk.",
    epilog="Begin with `firnline tables` and `firnline plan TABLE`: both change nothing.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


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
        with written():
            print(__version__)


def main(arguments: list[str] | None = None) -> None:
    """Runs one command and exits with its code."""
    if arguments is None:
        leave_whole()  # a caller with arguments of its own has a process of its own, and goes on
    given = sys.argv[1:] if arguments is None else arguments
    if sys.stdout is None:  # Python has none where the shell closed it (`>&-`); the next open file would get its number
        print("error: stdout is closed, so nobody would read the answer", file=sys.stderr)
        sys.exit(leaving(1))
    listen_again()
    settle_in()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name may have letters that the terminal does not
    code = leaving(run(given))
    if code == Interrupted.exit_code and arguments is None:
        leave_at_once()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Returns the exit code of one command."""
    try:
        with flags_are_typed():
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
        _readable(arguments)
        code = int(app(arguments, prog_name="firnline", standalone_mode=False) or 0)
        with written():
            sys.stdout.flush()  # a reader that went away shows here, not while Python shuts down
        return _interrupted("--json" in arguments) if code == Interrupted.exit_code else code
    except FirnlineError as problem:
        output_for("--json" in arguments).fail(_fitting(problem))
        return problem.exit_code
    except typer.TyperException as problem:
        return _misused(problem, arguments)
    except typer.Abort as aborted:
        return _aborted(aborted, "--json" in arguments)
    except KeyboardInterrupt:
        return _interrupted("--json" in arguments)


def _readable(arguments: list[str]) -> None:
    """Raises UsageError for an argument with bytes that are no letters: no table, ref or record has such a name."""
    for each in arguments:
        refuse_no_text(each, "an argument")


def _fitting(problem: FirnlineError) -> FirnlineError:
    """Returns the error with a hint at `resume` only where this command has begun a run."""
    if isinstance(problem, Interrupted) and not left_undone():
        return Interrupted(problem.message)
    if isinstance(problem, StoreError) and left_undone() and "firnline resume" not in problem.flags:
        return type(problem)(problem.message, "; ".join(filter(None, [problem.flags, _GOES_ON])))
    return problem


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
    hint = _GOES_ON if left_undone() else ""
    said = ": ".join(filter(None, ["interrupted", what_was_stopped()]))
    if as_json or logs_json():
        output_for(as_json).fail(Interrupted(said, hint=hint))
    else:
        clean_line()
        print(f"\n{said}" + (f"; {hint}" if hint else ""), file=sys.stderr)
    return Interrupted.exit_code


def _misused(problem: typer.TyperException, arguments: list[str]) -> int:
    """Returns the exit code of a command that makes no sense. One without any argument gets its help instead."""
    message = problem.format_message()
    if message.startswith("Usage: "):
        print(message, file=sys.stderr)  # its own help
    else:
        hint = helping.own_help(problem, get_command(app), arguments)
        output_for("--json" in arguments).fail(UsageError(message, hint=hint))
    return UsageError.exit_code
