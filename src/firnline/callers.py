"""Who reads a hint: at the command line it names flags, in Python the arguments that say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

ARGUMENTS: Mapping[str, str] = MappingProxyType(
    {
        "dropped": "dead",
        "near-misses keep": "keep_near_misses=True",
        "trust-snapshot": "trust of firnline.open",
        "engine local": 'engine="local" of firnline.open',
        "engine": "engine of firnline.open",
        "config": "config of firnline.open",
        "case": "inquiry",
        "by": "inquiry",
        "keep-expired-refs": 'keep={"history": …}',
    }
)
"""What says in Python what these flags say. Of every other flag it is the argument of its name."""
ONLY_TYPED = frozenset({"all", "list", "log", "memory", "name", "output", "policy", "port"})
"""Flags of commands that Python has no call for, or whose answer it gives as a value: they are left as they are."""
_FLAG = re.compile(r"(?<![\w-])--(near-misses keep|engine local|[a-z][a-z-]*[a-z])(?: (\d[\d.]*%|\d+(?=`)))?(?![\w-])")
_COMMAND = "`firnline "
_COMMANDS = re.compile(f"({_COMMAND}[^`]*`)")
_typed = False


@contextmanager
def flags_are_typed() -> Iterator[None]:
    """While a command runs, hints name its flags, on whatever thread they are read: errors travel between them."""
    global _typed  # noqa: PLW0603
    before, _typed = _typed, True
    try:
        yield
    finally:
        _typed = before


def in_callers_words(hint: str) -> str:
    """Returns a hint as who called can follow it. A whole command in it stays: that can be typed anywhere."""
    if _typed or "--" not in hint:
        return hint
    parts = _COMMANDS.split(hint)
    return "".join(part if part.startswith(_COMMAND) else _FLAG.sub(_argument, part) for part in parts)


def _argument(flag: re.Match[str]) -> str:
    name, value = flag[1], flag[2]
    if name in ONLY_TYPED:
        return flag[0]
    if name.startswith("keep-") and name not in ARGUMENTS:
        return f'keep={{"{name.removeprefix("keep-")}": {_literal(value) if value else "…"}}}'
    said = ARGUMENTS.get(name, name.replace("-", "_"))
    return f"{said}={_literal(value)}" if value else said


def _literal(value: str) -> str:
    return value if value.isdigit() else f'"{value}"'
