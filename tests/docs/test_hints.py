"""Every text of the package that names a command or an option names one that is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import firnline

from .test_reference import COMMANDS

PACKAGE = Path(firnline.__file__).parent
SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if "testing" not in path.relative_to(PACKAGE).parts]
BLANK = "\0"
"""Stands for what is only known when the text is made."""
_OPTION = re.compile(rf"(?<![\w-])--[a-z][a-z0-9-]*(?![\w{BLANK}-])")
_COMMAND = re.compile(r"`firnline ([^`]+)`")
_FOREIGN = {"--x-s3"}
"""The end of the name of an S3 Express bucket."""


def options_of(command: str) -> set[str]:
    own = COMMANDS[command].params
    return {name for each in own for name in (*each.opts, *each.secondary_opts)} | {"--help"}


ALL_OPTIONS = set().union(*map(options_of, COMMANDS)) | {"--version", "--log"}


def texts_in(path: Path) -> Iterator[tuple[int, str]]:
    """Yields every text of a module with its line, docstrings too: those of commands are their help."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            yield node.lineno, "".join(part.value if isinstance(part, ast.Constant) else BLANK for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def command_in(words: str) -> str | None:
    """Returns the command that a text calls, with all its words."""
    given = words.split()
    for length in (2, 1):
        if (found := " ".join(["firnline", *given[:length]])) in COMMANDS:
            return found
    return None


def wrong_in(text: str) -> Iterator[str]:
    for words in _COMMAND.findall(text):
        command = command_in(words)
        groups = {each.split()[1] for each in COMMANDS}
        if command is None:
            if not words.startswith("--") and words.split()[0].strip(BLANK) not in groups | {"", "COMMAND"}:
                yield f"`firnline {words}`: no such command"
        else:
            yield from (
                f"`firnline {words}`: {option}"
                for option in _OPTION.findall(words)
                if option not in options_of(command)
            )
    yield from (f"no command has {option}" for option in _OPTION.findall(text) if option not in ALL_OPTIONS | _FOREIGN)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_hint_names_a_command_or_an_option_that_is_not_there(path: Path) -> None:
    found = [f"{path.name}:{line}: {each}" for line, text in texts_in(path) for each in wrong_in(text)]
    assert found == []


def test_a_wrong_hint_is_found() -> None:
    assert list(wrong_in("`firnline hold add TABLE NAME --snapshot ID` keeps it")) == [
        "`firnline hold add TABLE NAME --snapshot ID`: --snapshot",
    ] + (["no command has --snapshot"] if "--snapshot" not in ALL_OPTIONS else [])
    assert list(wrong_in("`firnline undue RUN`")) == ["`firnline undue RUN`: no such command"]
    assert list(wrong_in(f"`firnline tag remove {BLANK}` and --keep-{BLANK}")) == []
