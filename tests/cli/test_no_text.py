"""Bytes that are no text are refused in words, wherever they come from: an argument, a program, or this very folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firnline.cli.main import run
from firnline.errors import UsageError
from firnline.lake import Lake, open_lake
from tests.cli.conftest import SmallLake

ODD, EVENTS = "/odd\udcff/t", "lake.ns.events"
ASKED: dict[str, Callable[[Lake], Any]] = {
    "plan": lambda at: at.plan(ODD),
    "plan of a path": lambda at: at.plan(Path(ODD)),
    "plan of a name": lambda at: at.plan("lake.ns.\udcff"),
    "plan of one of several": lambda at: list(at.several([ODD, ODD]).plan()),
    "plan into a list": lambda at: at.plan(EVENTS, files=f"{ODD}.parquet"),
    "tables": lambda at: at.tables(ODD),
    "orphans": lambda at: at.orphans(ODD),
    "orphans beside another": lambda at: at.orphans(EVENTS, also=(ODD,)),
    "orphans of an inventory": lambda at: at.orphans(EVENTS, inventory=f"{ODD}.csv"),
    "dropped": lambda at: at.dropped(ODD),
    "pointers": lambda at: at.pointers.open_path(ODD),
    "why": lambda at: at.why(EVENTS, ODD),
    "run": lambda at: at.run(f"{ODD}@20261119T003734Z-4961ce"),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_a_program_is_told(lake: SmallLake, asked: Callable[[Lake], Any]) -> None:
    with pytest.raises(UsageError, match="holds bytes that are no text"):
        asked(open_lake())


@pytest.mark.parametrize(
    "command",
    [
        "plan ./t", "plan ./t lake.ns.events --json", "orphans ./t", "tables ./", "dropped .", "check ./t",
        "expire ./t --yes",
    ],
)  # fmt: skip
def test_a_folder_of_such_a_name_is_told(
    lake: SmallLake,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    odd = os.path.join(os.fsencode(lake.folder), b"odd\xff")
    try:
        os.mkdir(odd)
    except OSError:
        pytest.skip("this file system knows letters alone")
    shutil.copytree(os.fsencode(lake.folder) + b"/ns/events", odd + b"/t")
    monkeypatch.chdir(odd)
    assert run(command.split()) == 2
    shown = capsys.readouterr()
    assert "holds bytes that are no text" in shown.out + shown.err
    (shown.out + shown.err).encode()
