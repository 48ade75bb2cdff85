"""firnline's answer to the same question, through the command that an operator types."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from .options import Options
from .places import canonical
from .worlds import World

ENGINE = os.environ.get("FIRNLINE_JUDGE_ENGINE", "local")


@dataclass(frozen=True)
class Answer:
    """Ids as strings; victims by canonical path with their sizes."""

    expired: frozenset[str]
    refs: frozenset[str]
    victims: dict[str, int]


def plan(world: World, options: Options, files: Path) -> Answer:
    """What `firnline plan` says; the list of victims is left in `files`, a path that ends in .csv."""
    answer = json.loads(said(_arguments(world, options, files)))
    with files.open(newline="", encoding="utf-8") as rows:
        victims = {canonical(row["path"]): int(row["size"]) for row in csv.DictReader(rows)}
    return Answer(frozenset(answer["expire"]), frozenset(answer["expire_refs"]), victims)


def _arguments(world: World, options: Options, files: Path) -> list[str]:
    arguments = ["plan", str(world.location), "--json", "--engine", ENGINE, "--include-outside"]
    arguments += ["--files", str(files), "--now", str(world.now)]
    if options.older_than is not None:
        arguments += ["--older-than", str(options.older_than)]
    if options.retain_last is not None:
        arguments += ["--retain-last", str(options.retain_last)]
    return arguments


def said(arguments: list[str]) -> str:
    """Standard output of a command, run in this process: starting Python for each would double the lane."""
    from firnline.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with patch.object(sys, "argv", ["firnline", *arguments]), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    if code not in (None, 0):
        raise AssertionError(f"firnline {' '.join(arguments)} ended with {code}: {err.getvalue()}{out.getvalue()}")
    return out.getvalue()
