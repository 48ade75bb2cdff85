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
from firnline.app.erasure import Erasures
from firnline.app.pointers.verbs import LakePointers
from firnline.app.requests import RunOptions, SearchOptions
from firnline.app.several import Several
from firnline.callers import ONLY_TYPED, flags_are_typed, in_callers_words
from firnline.errors import BlastRadiusExceeded, LeaseHeld
from firnline.formats.damage import named
from firnline.lake import Lake
from firnline.ops.tiers.waking import Inquiry
from firnline.policy.rules import RULE_NAMES
from firnline.policy.values import SETTINGS
from firnline.spark.telling import error_of, told
from firnline.testing.tables import SmallTable
from tests.cli.saying import Capture, said

SOURCE = Path(firnline.__file__).parent
COMMANDS_ALONE = ("cli", "web", "callers.py")
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])(?![\w-])")
WHOLE_COMMAND = re.compile(r"`firnline [^`]*`")


def texts(tree: ast.AST) -> Iterator[str]:
    """Yields every text of a module that is no docstring, what is put into it as braces."""
    apart = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    apart |= {id(part) for each in ast.walk(tree) if isinstance(each, ast.JoinedStr) for part in each.values}
    for each in ast.walk(tree):
        if isinstance(each, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in each.values)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in apart:
            yield each.value


def flags_in_hints() -> dict[str, set[str]]:
    """Returns each flag that a text outside the command line names by itself, and all such texts."""
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in COMMANDS_ALONE:
            continue
        for text in texts(ast.parse(path.read_text())):
            for flag in FLAG.findall(WHOLE_COMMAND.sub("", text)):
                found.setdefault(flag, set()).add(text)
    return found


def public_functions(kind: type) -> Iterator[Any]:
    yield from (each for name, each in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_"))


def arguments_of_python() -> set[str]:
    verbs = [each for kind in (Lake, Several, LakePointers, Erasures) for each in public_functions(kind)]
    taken = {name for verb in (*verbs, firnline.open_path) for name in inspect.signature(verb).parameters}
    return taken | set(RunOptions.__annotations__) | set(SearchOptions.__annotations__)


def said_in_python(text: str) -> list[str]:
    """Returns what stands in a hint in place of flags."""
    return sorted(set(re.findall("`([^`]*)`", in_callers_words(text))) - set(re.findall("`([^`]*)`", text)))


def refused_call(said: str, known: set[str]) -> list[str]:
    """Returns what of a hint's words in Python would be refused where they are typed as they stand."""
    if said.isidentifier():
        return [] if said in known else [said]
    calls = {"firnline.open": firnline.open, "firnline.open_worker": firnline.open_worker, "Inquiry": Inquiry}
    name = next((each for each in calls if said.startswith(f"{each}(")), None)
    call = ast.parse((f"verb({said})" if name is None else said).replace("…", "..."), mode="eval").body
    assert isinstance(call, ast.Call)
    taken = known if name is None else set(inspect.signature(calls[name]).parameters)
    rules = [key for each in call.keywords if each.arg == "keep" for key in ast.literal_eval(each.value)]
    wrong = [rule for rule in rules if rule not in {*RULE_NAMES, *SETTINGS}]
    return [*wrong, *(str(each.arg) for each in call.keywords if each.arg not in taken), *map(ast.unparse, call.args)]


def test_every_flag_that_a_hint_names_can_be_passed_in_python_or_is_known_to_have_no_argument() -> None:
    known, flags = arguments_of_python(), flags_in_hints()
    assert {"at-most", "blast-radius", "break-lease", "include-outside", "also", "engine", "memory"} <= set(flags)
    for flag, texts in flags.items():
        for text in texts:
            in_python = in_callers_words(text)
            assert flag in ONLY_TYPED or flag not in FLAG.findall(WHOLE_COMMAND.sub("", in_python)), text
            assert not [said for said in said_in_python(text) if refused_call(said, known)], in_python
    of_worker = set(inspect.signature(firnline.open_worker).parameters)
    assert {flag for flag in ONLY_TYPED if flag.replace("-", "_") in known | of_worker} <= {"name"}


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
    assert held.hint == "wait, or add `break_lease=True` if that process is certainly gone"
    with flags_are_typed(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: held.hint).result() == held.flags
    assert error_of(told(held)).flags == held.flags, "an executor does not know who called"


@pytest.mark.parametrize(
    ("typed", "in_python"),
    [
        ("`firnline plan TABLE --list` shows them", "`firnline plan TABLE --list` shows them"),
        ("or with a larger --blast-radius, if meant", "or with a larger `blast_radius`, if meant"),
        ("try --keep-within and --keep-last", 'try `keep={"within": …}` and `keep={"last": …}`'),
        ("`--keep-last 10`, or another rule", '`keep={"last": 10}`, or another rule'),
        ("or say `--engine local`, to do without", 'or say `firnline.open(engine="local")`, to do without'),
        ("leave --to out", "leave `to` out"),
        ("to a place: `--to PATH`", 'to a place: `to="PATH"`'),
        ("before that, with --grace 0s; then", 'before that, with `grace="0s"`; then'),
        ("name both: --case I-7 --by 'A. Person'", 'name both: `Inquiry(case="I-7", by="A. Person")`'),
        ("name --case and --by", "name `Inquiry(case=…, by=…)`"),
        ("keep it with --also s3://b/--dropped-1", 'keep it with `also=["s3://b/--dropped-1"]`'),
        ("--dropped 7; --near-misses keep leaves", '`dead={"7"}`; `keep_near_misses=True` leaves'),
        ("if so, --dropped s3://a/1 --dropped s3://a/2", 'if so, `dead={"s3://a/1", "s3://a/2"}`'),
        ("--same s3://a=s3://b (of S=T)", '`same=[("s3://a", "s3://b")]` (of S=T)'),
        ("--trust-snapshot ID, or '*' for all", "`firnline.open(trust=[\"ID\"])`, or '*' for all"),
        ("`--all` looks at every table", "`everywhere=True` looks at every table"),
        ("a--also b---grace -- x", "a--also b---grace -- x"),
    ],
)
def test_flags_become_arguments_and_nothing_else_changes(typed: str, in_python: str) -> None:
    assert in_callers_words(typed) == in_python
    with flags_are_typed():
        assert in_callers_words(typed) == typed


def test_a_hint_that_is_passed_on_by_another_error_waits_for_who_reads_it() -> None:
    held = LeaseHeld("it is held", hint="add --break-lease")
    with pytest.raises(LeaseHeld) as passed, named("unit", "k"):
        raise held
    with flags_are_typed():
        assert passed.value.hint == held.flags, "made on an executor, where no command runs"


@pytest.mark.parametrize("first_ends", [True, False])
def test_commands_may_end_in_another_order_than_they_began(first_ends: bool) -> None:
    one, other = flags_are_typed(), flags_are_typed()
    one.__enter__()
    other.__enter__()
    (one if first_ends else other).__exit__(None, None, None)
    assert in_callers_words("add --grace") == "add --grace", "a command still runs"
    (other if first_ends else one).__exit__(None, None, None)
    assert in_callers_words("add --grace") == "add `grace`"
