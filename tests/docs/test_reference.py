"""The reference is complete and current: commands, exit codes, JSON, configuration."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer.main

from firnline import errors
from firnline.cli.main import app, run

from .pages import DOCS, GUIDES, ROOT, blocks, headings, table_rows

REFERENCE = DOCS / "reference"
GENERATOR = ROOT / "scripts" / "cli_reference.py"
TABLE = "lake.artemis.telemetry"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cli_reference", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WHOLE: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = dict(generator().commands(WHOLE))
ERRORS = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.FirnlineError)]


# ---------------------------------------------------------------- commands


def test_the_command_reference_is_current() -> None:
    assert (REFERENCE / "cli.md").read_text() == generator().page(), "run: .venv/bin/python scripts/cli_reference.py"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_a_section(command: str) -> None:
    assert len(COMMANDS[command].help) > 20
    assert command in headings(REFERENCE / "cli.md")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_help(command: str) -> None:
    options = [each for each in COMMANDS[command].params if each.param_type_name == "option"]
    assert [each.opts for each in options if not each.help] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_a_guide(command: str) -> None:
    assert any(command in guide.read_text() for guide in GUIDES)


OF_SPARK_SUBMIT = {"--conf", "--master", "--py-files"}
"""Beside `sh` blocks the guide to clusters names these in prose and in a manifest."""


@pytest.mark.parametrize("guide", [ROOT / "README.md", *GUIDES], ids=lambda path: path.stem)
def test_guides_name_only_options_that_exist(guide: Path) -> None:
    every = (*COMMANDS.values(), WHOLE)
    known = {"--help"} | {name for command in every for each in command.params for name in each.opts}
    said = re.findall(r"(?<![\w-])--[a-z][a-z-]+", _without_other_tools(guide.read_text()))
    others = OF_SPARK_SUBMIT if guide.stem == "clusters" else set()
    assert set(said) - known == others


def _without_other_tools(text: str) -> str:
    """Returns the text with nothing of `sh` blocks but what is said to firnline: they start other programs too."""
    ours = re.compile(r"(?:^|\s)firnline (.*)$", re.MULTILINE)
    return re.sub(r"```sh\n(.*?)```", lambda block: "\n".join(ours.findall(block[1])), text, flags=re.DOTALL)


# ---------------------------------------------------------------- exit codes


def codes() -> dict[int, str]:
    rows = table_rows(REFERENCE / "exit-codes.md")
    return {int(row[0]): row[1] for row in rows if row[0].isdigit()}


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.kind)
def test_every_kind_stands_beside_its_exit_code(error: type[errors.FirnlineError]) -> None:
    assert f"`{error.kind}`" in codes()[error.exit_code]


def test_no_exit_code_is_documented_that_does_not_exist() -> None:
    assert codes().keys() == {0, *(error.exit_code for error in ERRORS)}


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["plan"], ["plan", "a.b", "--nonsense"], ["plan", "a.b", "--retain-last", "x"]]
)
def test_a_wrong_command_line_is_a_usage_error(
    arguments: list[str], inside: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "--json"]) == errors.UsageError.exit_code
    assert json.loads(capsys.readouterr().err)["error"]["kind"] == "usage"


# ---------------------------------------------------------------- JSON


def paths(value: Any, path: str = "") -> Iterator[str]:
    """Yields the path of every field; of a list the first item speaks, kinds of files may differ."""
    if isinstance(value, dict):
        for name, inner in value.items():
            below = f"{path}.*" if path.endswith((".by_kind", ".outcomes")) else f"{path}.{name}"
            yield below
            yield from paths(inner, below)
    elif isinstance(value, list) and value:
        yield from paths(value[0], f"{path}[]")


def documented(page: str, heading: str) -> set[str]:
    section = re.split(r"^## ", (REFERENCE / page).read_text(), flags=re.MULTILINE)
    body = next(each for each in section if each.startswith(f"{heading}\n"))
    example = re.search(r"^```json\n(.*?)^```$", body, re.DOTALL | re.MULTILINE)
    assert example is not None
    return set(paths(json.loads(example[1])))


@pytest.fixture
def said(small_lake: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command with --json and returns the fields of what it said, on stdout or else on stderr."""

    def ask(*arguments: str) -> set[str]:
        capsys.readouterr()
        run([*arguments, "--json"])
        printed = capsys.readouterr()
        return set(paths(json.loads(printed.out or printed.err)))

    assert small_lake.is_dir()
    return ask


def test_the_documents_have_the_fields_that_the_page_shows(said: Any) -> None:
    assert said("plan", TABLE) == documented("json.md", "Plan")
    assert said("why", TABLE, "main") == documented("json.md", "Why")
    assert said("check", TABLE) == documented("json.md", "Check")
    assert said("history", TABLE) == documented("json.md", "History")
    assert said("plan", "lake.artemis.nothing") == documented("json.md", "Errors")
    with Path("firnline.yaml").open("a") as config:
        config.write("audit: log\n")
    assert said("expire", TABLE, "--grace", "0s", "--yes") == documented("json.md", "Run")
    assert said("audit", "show") == documented("json.md", "Audit")


def test_every_example_is_json() -> None:
    for block in blocks(REFERENCE / "json.md", "json"):
        assert json.loads(block)


# ---------------------------------------------------------------- configuration


def test_every_environment_variable_is_documented_and_every_documented_one_exists() -> None:
    sources = [path.read_text() for path in (ROOT / "src" / "firnline").rglob("*.py") if "testing" not in path.parts]
    used = {name for text in sources for name in re.findall(r"FIRNLINE_[A-Z]+(?:_[A-Z]+)*", text)}
    rows = {row[0].strip("`") for row in table_rows(REFERENCE / "configuration.md")}
    assert used == {row for row in rows if row.startswith("FIRNLINE_")}
