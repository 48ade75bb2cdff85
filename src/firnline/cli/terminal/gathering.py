"""The commands of firnline, each loaded when it is called: `--help` and a small plan pay for no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_group

from firnline.cli.terminal.manners import talk
from firnline.cli.terminal.saying import Written


class Listed(NamedTuple):
    """A command or a group of commands as `--help` lists it, and the module that registers it."""

    name: str
    module: str
    says: str


class LoadedCommands(Mapping[str, Any]):
    """Every command by its name, in the order of `--help`."""

    def __init__(self, listed: tuple[Listed, ...]) -> None:
        self._modules = {each.name: each.module for each in listed}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded.update(_registered(self._modules[name]))
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


def _registered(module: str) -> Mapping[str, Any]:
    """Returns the commands that a module registers."""
    app = typer.Typer(rich_markup_mode=None)
    import_module(module).register(app)
    talk(app)
    return get_group(app).commands


def gathered(listed: tuple[Listed, ...]) -> type[TyperGroup]:
    """Returns a group of these commands that loads each when it is asked for."""

    class Gathered(Written, TyperGroup):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.commands: Any = LoadedCommands(listed)

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            with formatter.section("Commands"):
                formatter.write_dl([(each.name, each.says) for each in listed])

    return Gathered
