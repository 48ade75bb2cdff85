"""One rule for names, whatever the command: among several one that means nothing is told and stops no other; alone it
is the whole command's error.
"""

from __future__ import annotations

from typing import Any

import pytest

from firnline.cli.main import run
from tests.cli.test_unread_catalogs import configured, gone

Lake = Any
Capture = pytest.CaptureFixture[str]
COMMANDS = (
    "plan", "expire --yes", "expire --dry-run", "plan --orphans", "check", "history", "orphans --dry-run", "runs",
    "purge", "resume", "pointers sync",
)  # fmt: skip
TABLE, MISSING, PATTERN = "lake.ns.events", "lake.ns.gone", "lake.nope.*"


def told(capsys: Capture, command: str, *names: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run([*command.split(), *names])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def is_done(command: str, out: str) -> bool:
    """Tells whether a table was answered for; of one without runs nothing is told."""
    none = {"runs": "no runs in what could be read", "resume": "nothing to resume in what could be read"}
    none |= {"purge": "nothing to purge in what could be read"}
    return none.get(command, TABLE) in out


@pytest.mark.parametrize("command", COMMANDS)
def test_names_that_mean_nothing_stop_no_other(lake: Lake, capsys: Capture, command: str) -> None:
    lake.policy("pointers: identifier\n")
    code, out, err = told(capsys, command, MISSING, TABLE, PATTERN)
    assert code == 10
    assert is_done(command, out)
    assert MISSING in out + err
    assert PATTERN in out + err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_that_stands_alone_is_the_whole_error(lake: Lake, capsys: Capture, command: str) -> None:
    for name, said in ((MISSING, f"no table {MISSING}"), (PATTERN, f"no table is named like {PATTERN}")):
        assert told(capsys, command, name)[:2] == (10, "")
        assert told(capsys, command, name)[2].startswith(f"error: {said}\n")
        assert told(capsys, command, name, name)[:2] == (10, "")  # the same, said twice


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_catalog_that_is_away_stops_no_name_of_another(lake: Lake, capsys: Capture, command: str) -> None:
    lake.policy("pointers: identifier\n")
    configured(lake, *gone("away"))
    for names in ((TABLE, "away.ns.*"), ("away.ns.t", TABLE)):
        code, out, err = told(capsys, command, *names)
        assert code == 2
        assert is_done(command, out)
        assert "there is no catalog at" in out + err
    code, out, err = told(capsys, command, "away.ns.*")
    assert (code, "there is no catalog at" in out + err) == (2, True)
