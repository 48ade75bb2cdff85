"""A hint says what to do in words of who reads it: flags at the command line, arguments in Python."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import firnline
from firnline.app.pointers.verbs import LakePointers
from firnline.app.requests import RunOptions, SearchOptions
from firnline.app.several import Several
from firnline.callers import ARGUMENTS, ONLY_TYPED, flags_are_typed, in_callers_words
from firnline.errors import BlastRadiusExceeded, LeaseHeld
from firnline.lake import Lake
from firnline.policy.rules import RULE_NAMES
from firnline.policy.values import SETTINGS
from firnline.spark.telling import error_of, told
from firnline.testing.tables import QuickFiles, SmallTable
from tests.cli.saying import Capture, said

SOURCE = Path(firnline.__file__).parent
COMMANDS_ALONE = ("cli", "web")
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])(?![\w-])")
WHOLE_COMMAND = re.compile(r"`firnline [^`]*`")


def texts(tree: ast.AST) -> Iterator[str]:
    """Yields every text of a module that is no docstring, what is put into it as braces."""
    statements = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for each in ast.walk(tree):
        if isinstance(each, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in each.values)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in statements:
            yield each.value


def flags_in_hints() -> dict[str, str]:
    """Returns each flag that a text outside the command line names by itself, and one such text."""
    found: dict[str, str] = {}
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in COMMANDS_ALONE:
            continue
        for text in texts(ast.parse(path.read_text())):
            for flag in FLAG.findall(WHOLE_COMMAND.sub("", text)):
                found.setdefault(flag, f"{path.name}: {text}")
    return found


def public_functions(kind: type) -> Iterator[Any]:
    yield from (each for name, each in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_"))


def arguments_of_python() -> set[str]:
    verbs = [each for kind in (Lake, Several, LakePointers) for each in public_functions(kind)]
    taken = {name for verb in (*verbs, firnline.open) for name in inspect.signature(verb).parameters}
    return taken | set(RunOptions.__annotations__) | set(SearchOptions.__annotations__)


def test_every_flag_that_a_hint_names_has_an_argument_or_is_known_to_have_none() -> None:
    known, rules = arguments_of_python(), {*RULE_NAMES, *SETTINGS}
    named = flags_in_hints()
    assert {"at-most", "blast-radius", "break-lease", "include-outside", "also"} <= set(named)
    for flag, where in named.items():
        if flag in ONLY_TYPED:
            assert flag.replace("-", "_") not in known - {"name"}, where
        elif flag.startswith("keep-") and flag not in ARGUMENTS:
            assert flag.removeprefix("keep-") in rules, where
        else:
            said = next((each for name, each in ARGUMENTS.items() if name.split()[0] == flag), flag.replace("-", "_"))
            assert said.split("=")[0].split()[0] in known, where


@pytest.fixture
def neglected(lake: Any) -> SmallTable:
    table = SmallTable(QuickFiles(), f"file://{lake.folder}/ns/neglected")
    table.append(2)
    for _ in range(40):
        table.overwrite(table.live(), 2)
    lake.register("neglected", table.publish())
    return table


def test_what_a_hint_says_in_python_can_be_passed_as_it_stands(neglected: SmallTable, capsys: Capture) -> None:
    lake, asked = firnline.open(), {"retain_last": 2, "older_than": "1d"}
    with pytest.raises(BlastRadiusExceeded) as refused:
        lake.expire("lake.ns.neglected", **asked)
    shown = str(lake.plan("lake.ns.neglected", **asked))
    for text in (refused.value.hint, shown):
        assert "--" not in text, text
        for found in re.findall(r'`(at_most|blast_radius)="(\d+%)"`', text):
            assert lake.plan("lake.ns.neglected", **asked, **dict([found])).plan.refused is None
        assert len(re.findall(r"`(at_most|blast_radius)=", text)) == 2
    assert "at_most=&quot;50%&quot;" in lake.plan("lake.ns.neglected", **asked)._repr_html_()
    typed = said(capsys, "plan", "lake.ns.neglected", "--retain-last", "2", "--older-than", "1d")
    assert "`--at-most 50%`" in typed, "a command in the same process names flags"
    assert "at_most" not in typed
    assert str(lake.plan("lake.ns.neglected", **asked)) == shown, "and ends with the command"


def test_hints_name_flags_on_every_thread_of_a_command_and_from_executors() -> None:
    held = LeaseHeld("it is held", hint="wait, or add --break-lease if that process is certainly gone")
    assert held.hint == "wait, or add break_lease if that process is certainly gone"
    with flags_are_typed(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: held.hint).result() == held.flags
    assert error_of(told(held)).flags == held.flags, "an executor does not know who called"


@pytest.mark.parametrize(
    ("typed", "in_python"),
    [
        ("`firnline plan TABLE --list` shows them", "`firnline plan TABLE --list` shows them"),
        ("or with a larger --blast-radius, if meant", "or with a larger blast_radius, if meant"),
        ("try --keep-within and --keep-last", 'try keep={"within": …} and keep={"last": …}'),
        ("`--keep-last 10`, or another rule", '`keep={"last": 10}`, or another rule'),
        ("keep it with --also s3://b/--dropped-1", "keep it with also s3://b/--dropped-1"),
        ("--dropped 7; --near-misses keep leaves", "dead 7; keep_near_misses=True leaves"),
        ("say `--engine local`, to do", 'say `engine="local" of firnline.open`, to do'),
        ("a--also b---grace -- x", "a--also b---grace -- x"),
    ],
)
def test_flags_become_arguments_and_nothing_else_changes(typed: str, in_python: str) -> None:
    assert in_callers_words(typed) == in_python
    with flags_are_typed():
        assert in_callers_words(typed) == typed
