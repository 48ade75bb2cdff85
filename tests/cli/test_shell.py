"""The command line as a whole: help, completion, streams and exit codes as a shell sees them."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from firnline.cli.main import app, run
from firnline.cli.terminal import completing

FIRNLINE = Path(sys.executable).with_name("firnline")
PLAN = ("plan", "lake.ns.events", "--retain-last", "1")
Lake = Any
Completed = Callable[[str], list[str]]


def shell(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the installed command, its output going to pipes."""
    variables = {**os.environ, **environment}
    return subprocess.run([FIRNLINE, *arguments], env=variables, capture_output=True, text=True, check=False)


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yields every command and group of the command line."""
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


EVERY = list(commands(get_command(app)))


@pytest.mark.parametrize("path", EVERY, ids=lambda path: " ".join(path) or "firnline")
def test_every_command_has_help(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*path, "--help"]) == 0
    shown = capsys.readouterr()
    usage, _, rest = shown.out.partition("\n\n")
    assert usage.startswith("Usage: ")
    assert all(name in usage for name in path)
    assert len(rest.strip().splitlines()[0].split()) >= 2, "it says what the command does"
    assert shown.err == ""


@pytest.mark.parametrize("group", ["policy", "tag", "hold", "branch", "pointers", "audit"])
def test_a_group_lists_whole_sentences_on_any_terminal(
    group: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert run(["help", group]) == 0
    shown = capsys.readouterr().out
    listed = " ".join(shown.partition("Commands:")[2].split())
    assert "..." not in listed
    assert max(map(len, shown.splitlines())) <= 60
    for name, command in get_command(app).commands[group].commands.items():
        first = " ".join(command.help.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")
        assert f"{name} {first}." in listed


def test_there_are_the_commands_that_others_rely_on() -> None:
    assert {("tables",), ("plan",), ("why",), ("policy", "show"), ("policy", "check")} <= set(EVERY)


@pytest.mark.parametrize("arguments", [[], ["policy"]])
def test_a_bare_command_shows_its_help_and_fails(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("Usage: ")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_in_a_pipe_data_is_on_stdout_and_stderr_is_empty(lake: Lake, extra: list[str]) -> None:
    ended = shell(*PLAN, *extra)
    assert ended.returncode == 0
    assert ended.stderr == ""
    assert "lake.ns.events" in ended.stdout
    assert "\x1b" not in ended.stdout
    if extra:
        assert json.loads(ended.stdout)["table"] == "lake.ns.events"


def test_an_error_ends_with_its_exit_code_and_no_traceback(lake: Lake) -> None:
    ended = shell("plan", "lake.ns.event")
    assert (ended.returncode, ended.stdout) == (10, "")
    assert ended.stderr == "error: no table lake.ns.event\n\nhint: did you mean lake.ns.events?\n"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("arguments", [PLAN, ("--help",)], ids=" ".join)
def test_a_reader_that_went_away_is_no_reason_to_complain(lake: Lake, arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run([FIRNLINE, *arguments], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writing)
    assert ended.stderr == ""
    assert ended.returncode == 1


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_can_be_installed_in_a_shell(name: str) -> None:
    ended = shell(_FIRNLINE_COMPLETE=f"source_{name}")
    assert ended.returncode == 0, ended.stderr
    assert "_FIRNLINE_COMPLETE=complete_" in ended.stdout


@pytest.mark.parametrize(("words", "meant"), [("firnline pl", "plan"), ("firnline policy sh", "show")])
def test_commands_are_completed(words: str, meant: str) -> None:
    place = str(len(words.split()) - 1)
    ended = shell(_FIRNLINE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=place)
    assert ended.stdout.split() == [meant]
    assert ended.stderr == ""


def test_options_are_completed() -> None:
    ended = shell(_FIRNLINE_COMPLETE="complete_bash", COMP_WORDS="firnline plan --keep-m", COMP_CWORD="2")
    assert ended.stdout.split() == ["--keep-monthly"]


def test_letters_that_the_terminal_does_not_have_do_not_end_a_command(lake: Lake) -> None:
    lake.events.tag("naïve", lake.events.head())
    lake.publish()
    shown = shell(*PLAN, PYTHONIOENCODING="ascii")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert r"na\xefve" in shown.stdout
    said = shell(*PLAN, "--json", PYTHONIOENCODING="ascii")
    assert any("naïve" in kept["refs"] for kept in json.loads(said.stdout)["keep"])
    failed = shell("plan", "lake.ns.naïve", "--json", PYTHONIOENCODING="ascii")
    assert "naïve" in json.loads(failed.stderr)["error"]["message"]


def test_ctrl_c_is_said_to_programs_as_every_other_error_is(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    config, over = lake.folder / "a pipe", threading.Event()
    os.mkfifo(config)

    def press() -> None:
        with config.open("w"):  # opens when the command opens it too, which then waits for what is in it
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            over.wait(2)  # a signal that came just before it began to wait is noticed only when that ends

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored in the background
    presser = threading.Thread(target=press)
    presser.start()
    try:
        assert run([*PLAN, "--json", "--config", str(config)]) == 130
    finally:
        over.set()
        presser.join()
        signal.signal(signal.SIGINT, before)
    assert json.loads(capsys.readouterr().err)["error"]["kind"] == "interrupted"


@pytest.fixture
def completed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Completed:
    """Returns what bash would offer for the last word, asked in this process: starting one takes longer than to offer.

    A process that stands still is left, which here would be that of the tests.
    """
    monkeypatch.setattr(completing, "STANDSTILL_S", 300.0)

    def offered(words: str) -> list[str]:
        asked = {"_FIRNLINE_COMPLETE": "complete_bash", "COMP_WORDS": words}
        asked["COMP_CWORD"] = str(len(words.split(" ")) - 1)
        with monkeypatch.context() as asking:
            for name, value in asked.items():
                asking.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                run([])
        said = capsys.readouterr()
        assert (said.err, ended.value.code) == ("", 0)
        return [*filter(None, said.out.splitlines())]

    return offered


def test_tables_tags_runs_and_values_are_completed(
    lake: Lake, capsys: pytest.CaptureFixture[str], completed: Completed
) -> None:
    assert run(["expire", *PLAN[1:], "--yes", "--json"]) == 0
    run_id = json.loads(capsys.readouterr().out)["run"]
    asked = {"_FIRNLINE_COMPLETE": "complete_bash", "COMP_WORDS": "firnline plan lake.n", "COMP_CWORD": "2"}
    ended = shell(**asked)
    assert (ended.stdout.split(), ended.stderr) == (["lake.ns.events"], "")
    assert completed("firnline plan lake.n") == ["lake.ns.events"]
    assert completed("firnline plan ./ns") == ["./ns/"]
    assert completed("firnline tag remove lake.ns.events re") == ["release"]
    assert completed("firnline why lake.ns.events ma") == ["main"]
    assert completed("firnline undo 20") == [run_id.partition("@")[2]]
    assert completed("firnline undo lake.ns.events@20") == [run_id]
    assert completed("firnline undo la") == ["lake.ns.events"]
    assert completed("firnline runs --state comm") == ["committing", "committed"]
    assert completed("firnline plan --engine s") == ["spark"]
    assert completed("firnline plan ns.e") == ["ns.events"], "the only catalog's name may be left out"
    assert completed("firnline help pol") == ["policy"]
    assert completed("firnline help policy s") == ["show", "schema"]


def test_a_name_that_bash_would_tear_is_offered_as_one_word(lake: Lake, completed: Completed) -> None:
    lake.register("my $table", lake.events.publish())
    (offered,) = completed("firnline plan lake.ns.m")
    read = subprocess.run(["bash", "-c", f"printf %s {offered}"], capture_output=True, text=True, check=True)
    assert read.stdout == "lake.ns.my $table"


def test_a_catalog_that_hangs_does_not_hold_the_prompt(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        uri = f"http://127.0.0.1:{listening.getsockname()[1]}"
        (lake.folder / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n    type: rest\n    uri: {uri}\n")
        variables = {"_FIRNLINE_COMPLETE": "complete_bash", "COMP_WORDS": "firnline plan la", "COMP_CWORD": "2"}
        ended = subprocess.run(
            [FIRNLINE], env={**os.environ, **variables}, capture_output=True, text=True, check=True, timeout=15
        )  # a command gives such a server 20 seconds
    assert (ended.stdout, ended.stderr) == ("", "")


def test_what_is_found_for_a_prompt_says_nothing_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    def find() -> list[str]:
        print("a word")
        logging.getLogger("a library").warning("a warning")
        raise KeyError("a mistake")

    assert completing._safely(find) == []
    assert capsys.readouterr() == ("", "")


def test_where_nothing_can_be_read_nothing_is_offered(lake: Lake, completed: Completed) -> None:
    assert completed("firnline tag remove lake.ns.nothing re") == []
    (lake.folder / "catalog.db").write_bytes(b"no database")
    assert completed("firnline plan lake.n") == []
    (lake.folder / "firnline.yaml").write_text("keep: [")
    assert completed("firnline plan lake.n") == []
