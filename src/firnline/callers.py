"""Who reads a hint: at the command line it names flags, in Python the arguments that say the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from types import MappingProxyType

ARGUMENTS: Mapping[str, str] = MappingProxyType(
    {
        "all": "everywhere=True",
        "allow-outside": "allow_outside=True",
        "break-lease": "break_lease=True",
        "include-outside": "include_outside=True",
        "near-misses": "keep_near_misses=True",
        "new-history": "new_history=True",
        "take-over": "take_over=True",
        "also": "also=[{}]",
        "dropped": "dead={{{}}}",
        "same": "same=[({})]",
        "config": "firnline.open(config={})",
        "engine": "firnline.open(engine={})",
        "trust-snapshot": "firnline.open(trust=[{}])",
        "memory": "firnline.open_worker(memory={})",
        "keep-expired-refs": 'keep={{"history": {}}}',
    }
)
"""What says in Python what these flags say, with the flag's value in it. Of every other flag it is the argument of its
name.
"""
ONLY_TYPED = frozenset({"list", "log", "name", "output", "policy", "port"})
"""Flags of commands that Python has no call for, or whose answer it gives as a value: they are left as they are."""
_UNTOLD = "…"
_WORD = r"(?=[^\s`]*[^\sa-z'`,;:.)-])[^\s`]*[^\s`,;:.)]"
"""A value among plain English: a word with a letter in it that no English word has, without what ends a clause."""
_VALUE = rf"(?:(?<=engine )local\b|(?<=near-misses )keep\b|'[^'`]*'|{_WORD})"
_INQUIRY = re.compile(rf"(?<![\w-])--case(?: ({_VALUE}))?(?: and)? --by(?: ({_VALUE}))?(?![\w-])")
_FLAG = re.compile(rf"(?<![\w-])--([a-z][a-z-]*[a-z])(?![\w-])((?: {_VALUE}(?: --\1 {_VALUE})*)?)")
_QUOTED = re.compile("(`[^`]*`)")
_commands, _counting = 0, Lock()


@contextmanager
def flags_are_typed() -> Iterator[None]:
    """While a command runs, hints name its flags, on whatever thread they are read: errors travel between them."""
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(more: int) -> None:
    global _commands  # noqa: PLW0603
    with _counting:  # commands may end in another order than they began
        _commands += more


def in_callers_words(hint: str) -> str:
    """Returns a hint as who called can follow it. A whole command in it stays: that can be typed anywhere."""
    if _commands or "--" not in hint:
        return hint
    return "".join(map(_said, _QUOTED.split(hint)))


def _said(part: str) -> str:
    if part.startswith("`firnline "):
        return part
    return _translated(part, "" if part.startswith("`") else "`")


def _translated(part: str, quote: str) -> str:
    """Returns a part of a hint with arguments for flags, in quotes of their own: `to` alone would be a word."""

    def of_inquiry(both: re.Match[str]) -> str:
        case, by = (_UNTOLD if each is None else _literal(each) for each in both.groups())
        return f"{quote}Inquiry(case={case}, by={by}){quote}"

    def of_flag(flag: re.Match[str]) -> str:
        return flag[0] if flag[1] in ONLY_TYPED else f"{quote}{_argument(flag[1], flag[2])}{quote}"

    return _FLAG.sub(of_flag, _INQUIRY.sub(of_inquiry, part))


def _argument(name: str, given: str) -> str:
    """Returns the argument for a flag and what follows it: its value, or several with the flag before each."""
    values = given.removeprefix(" ").split(f" --{name} ") if given else []
    if name in ARGUMENTS:
        said = ", ".join(map(_literal, values)) or _UNTOLD
        return ARGUMENTS[name].format(said.replace("=", '", "', 1) if name == "same" else said)
    if name.startswith("keep-"):
        return f'keep={{"{name.removeprefix("keep-")}": {_number(values)}}}'
    return f"{name.replace('-', '_')}={_number(values)}" if values else name.replace("-", "_")


def _number(values: list[str]) -> str:
    return ", ".join(each if each.isdecimal() else _literal(each) for each in values) or _UNTOLD


def _literal(value: str) -> str:
    return _UNTOLD if value == _UNTOLD else json.dumps(value.strip("'"), ensure_ascii=False)
