"""Where a package is missing that `pip install firnline` leaves out, the command that needs it says how to get it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from firnline.extras import EXTRAS
from tests.neighbours.lakes import real_lake

MISSING = tuple(package for packages in EXTRAS.values() for package in packages)
ALL_BUT_ONE = ("--older-than", "2100-01-01T00:00:00Z", "--retain-last", "1")
WITHOUT = "import sys; sys.modules |= dict.fromkeys({!r}); from firnline.cli import main; main()"


def said(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT.format(MISSING), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with real_lake(tmp_path, monkeypatch) as lake:
        lake.create("a")
        for number in range(3):
            lake.append("a", number)
        yield "lake.db.a"


def test_a_table_in_a_folder_needs_none_of_them(table: str) -> None:
    planned = said("plan", table, *ALL_BUT_ONE, "--json")
    assert planned.returncode == 0, planned.stderr
    assert len(json.loads(planned.stdout)["expire"]) == 2
    done = said("expire", table, *ALL_BUT_ONE, "--yes", "--grace", "0s")
    assert done.returncode == 0, done.stderr


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("spark", ("sql", "SELECT 1")),
        ("spark", ("plan", "lake.db.a", *ALL_BUT_ONE, "--engine", "spark")),
        ("s3", ("plan", "s3://bucket/table")),
    ],
)
def test_what_needs_one_says_how_to_get_it(table: str, extra: str, arguments: tuple[str, ...]) -> None:
    refused = said(*arguments)
    assert refused.returncode == 2, (refused.stdout, refused.stderr)
    assert f"pip install 'firnline[{extra}]'" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_database_without_its_driver(table: str, tmp_path: Path) -> None:
    settings = (tmp_path / ".pyiceberg.yaml").read_text()
    (tmp_path / ".pyiceberg.yaml").write_text(
        f"{settings}  other:\n    type: sql\n    uri: postgresql+psycopg://127.0.0.1:1/x\n    warehouse: file:///w\n"
    )
    refused = said("plan", "other.db.a")
    assert refused.returncode == 2, (refused.stdout, refused.stderr)
    assert "pip install 'firnline[postgres]'" in refused.stderr


def test_a_cache_in_redis(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRNLINE_CACHE", "redis://127.0.0.1:1/0")
    refused = said("plan", table)
    assert "pip install 'firnline[redis]'" in refused.stderr, (refused.returncode, refused.stdout, refused.stderr)
