"""The command line never loads pandas by itself, and never keeps it from anybody who needs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import firnline

SOURCE = str(Path(next(iter(firnline.__path__))).parent)
PANDAS = "THERE = True\n"
ARRAY = "import pyarrow as pa; pa.array([1, None]); pa.array(['a'])"
PLAIN = "import sys\n{}\nassert 'pandas' {} sys.modules, sorted(sys.modules)"
LEAN = "from firnline.cli.terminal.process import without_pandas; without_pandas()"


@pytest.fixture
def pandas(tmp_path: Path) -> Path:
    """A pandas that says when it is loaded; pyarrow would rather have another version, but it has loaded this one."""
    (tmp_path / "pandas").mkdir()
    (tmp_path / "pandas" / "__init__.py").write_text("__version__ = '0.0.1'\nTHERE = True\n")
    return tmp_path


def passes(code: str, pandas: Path) -> None:
    around = {**os.environ, "PYTHONPATH": f"{pandas}{os.pathsep}{SOURCE}"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=around, check=True, timeout=120)


def test_pyarrow_alone_loads_pandas(pandas: Path) -> None:
    """What the rest of this file is about: should this fail some day, none of it is needed any more."""
    passes(PLAIN.format(ARRAY, "in"), pandas)


def test_a_command_loads_none(pandas: Path) -> None:
    passes(PLAIN.format(f"{LEAN}\n{ARRAY}", "not in"), pandas)


def test_it_can_be_asked_for_twice_and_stands_once_in_the_way(pandas: Path) -> None:
    once = "assert [type(each).__name__ for each in sys.meta_path].count('_NoPandas') == 1"
    passes(f"import sys\n{LEAN}\n{LEAN}\n{once}", pandas)


def test_what_spark_asks_for_it_gets(pandas: Path) -> None:
    passes(f"{LEAN}\nimport pyspark\nimport pandas\nassert pandas.THERE", pandas)


def test_pandas_that_is_there_already_stays(pandas: Path) -> None:
    passes(f"import pandas\n{LEAN}\nimport sys, pandas\nassert pandas.THERE\n{ARRAY}", pandas)


def test_a_plan_of_the_command_line_loads_none(pandas: Path, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom firnline.cli.main import run\nfrom firnline.testing.tables import QuickFiles, SmallTable\n"
        f"made = SmallTable(QuickFiles(), 'file://{tmp_path}/t'); made.append(1); made.publish()\n"
        "assert 'pandas' not in sys.modules\n"
        "assert run(['plan', made.location, '--json']) == 0"
    )
    passes(PLAIN.format(code, "not in"), pandas)


def test_help_loads_nothing_that_only_work_needs() -> None:
    heavy = ("numpy", "pyarrow", "obstore", "pyspark", "pyiceberg", "rich", "firnline.lake", "firnline.ops.runs")
    code = (
        "import sys\nfrom firnline.cli.main import run\nassert run(['--help']) == 0\n"
        f"assert [name for name in {heavy!r} if name in sys.modules] == []"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, stdout=subprocess.DEVNULL)
