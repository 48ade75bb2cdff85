"""`make unit` is what it says: its tests start no server and no JVM."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .pages import ROOT

RECIPE = subprocess.run(
    ["make", "-n", "-o", ".venv/.ready", "unit"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout

ATTEMPTS = {
    "a JVM": "subprocess.run(['java', '-version'], check=False)",
    "a session": "SparkSession.builder.master('local[1]').getOrCreate()",
    "a server": "socket.create_server(('127.0.0.1', 0))",
    "a connection": "socket.create_connection(('127.0.0.1', 1))",
}
SUBJECT = """
import socket, subprocess
import pytest
from pyspark.sql import SparkSession

def test_it():
    try:
        {attempt}
    except Exception:  # as product code may
        pass
"""


def run(folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    """Returns how a test ends in that lane."""
    (folder / "test_subject.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "harness.pure", "-c", str(ROOT / "pyproject.toml")]
    command += ["--rootdir", str(folder), "-p", "harness.servers.fixtures", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_lane_is_run_so() -> None:
    assert re.search(r"pytest\b.* -p harness\.pure\b.* tests/unit\b", RECIPE)
    assert not re.search(r"harness\.servers|scripts/services", RECIPE)


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_what_starts_or_reaches_a_server_or_a_jvm_fails(tmp_path: Path, attempt: str) -> None:
    ended = run(tmp_path, SUBJECT.format(attempt=attempt))
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "`make unit` has no server and no JVM" in ended.stdout


@pytest.mark.parametrize("asks", ["def test_it(moto_bucket): ...", "@pytest.mark.spark\ndef test_it(): ..."])
def test_what_asks_for_a_server_or_a_session_is_not_taken(tmp_path: Path, asks: str) -> None:
    ended = run(tmp_path, f"import pytest\n{asks}\n")
    assert ended.returncode == 4, ended.stdout + ended.stderr
    assert "`make unit` has no server and no JVM: test_subject.py::test_it" in ended.stderr


def test_a_pure_test_passes(tmp_path: Path) -> None:
    assert run(tmp_path, SUBJECT.format(attempt="subprocess.run(['sh', '-c', ':'], check=True)")).returncode == 0
