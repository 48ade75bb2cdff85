"""A third format: it passes the contract, and nothing outside its package knows of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from firnline.ports.formats import State, TableFormat
from firnline.spark.session import session
from firnline.testing.formats import FormatContract, Make
from harness.lanes import by_lane

from .conftest import PACKAGE
from .tables import ToyTable

SOURCE = Path(__file__).parents[2] / "src" / "firnline"


class TestToy(FormatContract):
    kit_name = "toy"
    every = by_lane(2, 2, 1)

    @pytest.fixture
    def make(self) -> Make:
        return ToyTable.make

    @pytest.mark.spark
    @pytest.mark.xdist_group("spark")
    def test_both_engines_agree(self, table_format: TableFormat, state: State) -> None:
        """A session that was started before this test does not have the package on its workers' path."""
        session().sparkContext.addPyFile(str(PACKAGE / "toy_lake.py"))
        super().test_both_engines_agree(table_format, state)


def test_it_is_a_toy() -> None:
    lines = [line for path in PACKAGE.rglob("*.py") for line in path.read_text().splitlines()]
    assert len(lines) < 300


def test_nothing_else_knows_of_it() -> None:
    texts = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    assert not [path for path, text in texts.items() if "toy_lake" in text or '"toy"' in text]


ELSEWHERE = """
import pytest
from toy_tables import ToyTable

from firnline.testing.formats import FormatContract


class TestElsewhere(FormatContract):
    kit_name = "toy"

    @pytest.fixture
    def make(self):
        return ToyTable.make
"""


def test_the_contract_stands_on_the_package_alone(tmp_path: Path) -> None:
    """A package that is not of this repository has none of its fixtures."""
    (tmp_path / "test_elsewhere.py").write_text(ELSEWHERE)
    (tmp_path / "toy_tables.py").write_text(Path(__file__).with_name("tables.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    spark\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(tmp_path)])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--setup-plan", "test_elsewhere.py"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "test_a_table_is_found_by_its_folder" in ran.stdout
