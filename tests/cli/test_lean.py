"""The command line never loads pandas by itself, and never keeps it from anybody who needs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import firnline
from firnline.testing.tables import QuickFiles, SmallTable

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


MODULES_OF_A_PLAN = 260
NOT_FOR_A_PLAN = (
    *("pyarrow.acero", "pyarrow.dataset", "pyspark", "pyiceberg", "sqlalchemy", "pydantic", "rich", "numba"),
    *("firnline.sql", "firnline.web", "firnline.worker", "firnline.spark", "firnline.history"),
    *("firnline.journal.audit", "firnline.journal.outcomes", "firnline.pointers.publishing", "firnline.app.pointers"),
    *(
        "firnline.ops.marks",
        "firnline.ops.history",
        "firnline.ops.erasure",
        "firnline.ops.html",
        "firnline.ops.pointers",
    ),
    *("firnline.ops.runs.advance", "firnline.ops.runs.commit", "firnline.ops.runs.purge", "firnline.ops.runs.record"),
    *(
        "firnline.ops.orphans.scope",
        "firnline.ops.tiers.transfer",
        "firnline.plans.graph.text",
        "firnline.plans.erasure",
    ),
    *("firnline.local.census", "firnline.local.walk", "firnline.walking.axis", "firnline.formats.avro.splicing"),
)


def test_a_small_plan_loads_nothing_that_only_other_commands_need(tmp_path: Path) -> None:
    """Most of a small plan is imports: a module costs about a millisecond, and a hundred of them are felt."""
    made = SmallTable(QuickFiles(), f"file://{tmp_path}/t")
    for number in range(3):
        made.append(number + 1)
    made.publish()
    code = (
        "import sys\nfrom firnline.cli.main import run\n"
        f"assert run(['plan', {made.location!r}, '--older-than', '0d', '--retain-last', '1', '--json']) == 0\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=True, timeout=120, capture_output=True, text=True)
    loaded = ended.stderr.splitlines()[-1].split()
    assert json.loads(ended.stdout)["expire"]
    assert [each for each in loaded if each.startswith(tuple(f"{name}." for name in NOT_FOR_A_PLAN))] == []
    assert [each for each in NOT_FOR_A_PLAN if each in loaded] == []
    assert len([each for each in loaded if each.startswith("firnline")]) < MODULES_OF_A_PLAN


def test_help_loads_nothing_that_only_work_needs() -> None:
    heavy = ("numpy", "pyarrow", "obstore", "pyspark", "pyiceberg", "rich", "firnline.lake", "firnline.ops.runs")
    code = (
        "import sys\nfrom firnline.cli.main import run\nassert run(['--help']) == 0\n"
        f"assert [name for name in {heavy!r} if name in sys.modules] == []"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, stdout=subprocess.DEVNULL)
