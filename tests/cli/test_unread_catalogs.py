"""What could not be looked at is told as such: nobody can say of it that all is there, or that nothing is."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from firnline.cli.main import run
from tests.cli.saying import Capture, facts, said

Lake = Any
GONE = "  {name}:\n    type: sql\n    uri: sqlite:////nowhere/{name}.db\n"
EMPTY = "  {name}:\n    type: sql\n    uri: sqlite:///{folder}/{name}.db\n    warehouse: file://{folder}\n"
ACTS = ("plan", "check", "history", "expire", "orphans")


def configured(lake: Lake, *catalogs: str, alone: bool = False) -> None:
    file = lake.folder / ".pyiceberg.yaml"
    file.write_text(("catalog:\n" if alone else file.read_text()) + "".join(catalogs))


def gone(*names: str) -> tuple[str, ...]:
    return tuple(GONE.format(name=name) for name in names)


def shown(capsys: Capture, *arguments: str) -> str:
    """Returns what a command says that could not look at everything."""
    capsys.readouterr()
    assert run(list(arguments)) != 0
    return capsys.readouterr().out


def test_a_check_vouches_for_what_it_looked_at_alone(lake: Lake, capsys: Capture) -> None:
    assert said(capsys, "check", "--all").splitlines()[-1] == "every file is there"
    configured(lake, *gone("other"))
    *_, sums, catalogs, verdict = shown(capsys, "check", "--all").splitlines()
    assert sums.strip().startswith("1 table ")
    assert catalogs == "1 catalog cannot be read"
    assert verdict == "of the tables that were looked at, every file is there"
    configured(lake, *gone("other", "third"), alone=True)
    *_, sums, catalogs = shown(capsys, "check", "--all").splitlines()
    assert sums.strip().startswith("0 tables ")
    assert catalogs == "2 catalogs cannot be read"


def test_catalogs_are_counted_as_no_tables(lake: Lake, capsys: Capture) -> None:
    lake.register("bad", f"file://{lake.folder}/nowhere.json")
    configured(lake, *gone("other", "third"))
    for command, told in (("plan", "not planned"), ("check", "not looked at")):
        lines = shown(capsys, command, "--all").splitlines()
        assert f"{told}: 1 table" in lines
        assert "2 catalogs cannot be read" in lines
        assert any(line.strip().startswith("2 tables ") for line in lines)
    lines = shown(capsys, "expire", "--all", "--yes").splitlines()
    assert "not carried out: 2 tables; not counted above" in lines
    assert "2 catalogs cannot be read" in lines
    capsys.readouterr()
    run(["plan", "--all", "--json"])
    assert '"unread_catalogs": 2' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "flat"),
    [("tables", "no tables"), ("runs", "no runs"), ("purge", "nothing to purge"), ("resume", "nothing to resume")],
)
def test_nothing_is_denied_of_what_could_not_be_asked(lake: Lake, capsys: Capture, command: str, flat: str) -> None:
    configured(lake, *gone("other"), alone=True)
    assert shown(capsys, command) == f"{flat} in what could be read\n"


def test_a_catalog_without_tables_is_named_and_no_other_is_asked_for(lake: Lake, capsys: Capture) -> None:
    for name in ("bare", "second"):
        SqlCatalog(name, uri=f"sqlite:///{lake.folder}/{name}.db", warehouse=f"file://{lake.folder}").close()
    configured(lake, EMPTY.format(name="bare", folder=lake.folder), alone=True)
    assert said(capsys, "tables") == said(capsys, "tables", "bare") == "no tables in catalog bare\n"
    assert facts(capsys, "tables") == {"tables": []}
    configured(lake, EMPTY.format(name="second", folder=lake.folder))
    assert said(capsys, "tables") == "no tables in catalogs bare, second\n"


def test_where_no_catalog_is_configured_all_of_them_are_refused(lake: Lake, capsys: Capture) -> None:
    (lake.folder / ".pyiceberg.yaml").unlink()
    assert "hint: catalogs come from PyIceberg's configuration" in said(capsys, "tables")
    for command in ACTS:
        refused = said(capsys, command, "--all", *(["--yes"] if command == "expire" else []), code=2)
        assert refused.startswith("error: no catalog is configured\n")
        assert "hint: catalogs come from PyIceberg's configuration" in refused


def test_where_nothing_was_committed_nothing_is_said_of_runs(lake: Lake, capsys: Capture) -> None:
    assert "hint: `firnline runs`" in said(capsys, "expire", "lake.ns.*", "--retain-last", "2", "--yes")
    assert "hint:" not in said(capsys, "expire", "lake.ns.*", "--retain-last", "100", "--yes")
