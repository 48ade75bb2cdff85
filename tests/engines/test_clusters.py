"""The same answers on real clusters, whose executors have a Python of their own that never heard of firnline."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from firnline.spark.executors.shipping import distributions, modules

from .clusters import (
    LACKED,
    SCRIPT,
    SOURCE,
    Cluster,
    bare_python,
    connect_server,
    first_on_path,
    python_without,
    run_on,
    standalone,
    surroundings,
)

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("clusters")]
HEAVY = ("pyarrow", "numpy", "numba", "llvmlite")
"""What executors of the quickest of the long tests have: packing these takes longer than all the rest."""

SINGLE_FILES = ("six", "typing_extensions")


def check(facts: dict[str, Any], python: Path, had: tuple[str, ...] = ()) -> None:
    """Fails unless executors worked, with an interpreter and packages that are not the driver's."""
    assert min(facts[each] for each in ("survey", "census", "purge", "sql")) > 0
    assert Path(facts["python"]).parent == python.parent
    assert "site-packages" not in facts["firnline"]
    lacked = {name for each in distributions().values() for name in modules(each)} - set(had)
    assert set(facts["came"]) >= {name for name in lacked if name not in SINGLE_FILES and name.isidentifier()}
    assert not set(facts["came"]) & set(had)
    assert facts["fast"]


def check_small(facts: dict[str, Any], python: Path) -> None:
    """Fails unless executors found victims, with another interpreter that got firnline and what it lacked from here."""
    assert facts["survey"] > 0
    assert Path(facts["python"]).parent == python.parent
    assert "site-packages" not in facts["firnline"]
    assert facts["came"] == [LACKED]
    assert facts["fast"]


def test_a_small_local_cluster(tmp_path: Path) -> None:
    python = python_without(tmp_path / "bare", [LACKED])
    around = {**surroundings(tmp_path), "PYSPARK_PYTHON": str(python)}
    check_small(run_on({"SPARK_MASTER": "local-cluster[1,1,1024]"}, around, tmp_path, "survey"), python)


def test_a_small_standalone_cluster(tmp_path: Path, small_standalone: Cluster) -> None:
    here = first_on_path(Path(sys.executable), surroundings(tmp_path))
    said = run_on({"SPARK_MASTER": small_standalone.master}, here, tmp_path, "survey")
    check_small(said, small_standalone.python)


def test_a_small_connect_server(tmp_path: Path) -> None:
    python = python_without(tmp_path / "bare", [LACKED])
    around = surroundings(tmp_path)
    with connect_server({**around, "PYSPARK_PYTHON": str(python)}, tmp_path, cores=1) as remote:
        check_small(run_on({"SPARK_REMOTE": remote}, around, tmp_path, "survey"), python)


@pytest.mark.full
def test_local_cluster(tmp_path: Path) -> None:
    python = bare_python(tmp_path / "bare", HEAVY)
    around = {**surroundings(tmp_path), "PYSPARK_PYTHON": str(python)}
    check(run_on({"SPARK_MASTER": "local-cluster[2,1,1024]"}, around, tmp_path), python, HEAVY)


@pytest.mark.full
def test_tasks_that_fail_or_run_twice_and_executors_that_die_change_no_answer(tmp_path: Path) -> None:
    around = {**surroundings(tmp_path), "PYSPARK_PYTHON": sys.executable}
    facts = run_on({}, around, tmp_path, script=SCRIPT.with_name("hard_times.py"))
    assert min(facts[each] for each in ("stumbling", "deleted_twice", "bereaved")) > 0, facts


def test_under_spark_submit_the_cluster_is_the_one_it_names(tmp_path: Path) -> None:
    """Nobody who submits to a cluster wants the walk on the cores of his driver."""
    script = tmp_path / "submitted.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {SOURCE!r})\n"
        "from firnline.spark.session import session\n"
        f"open({str(tmp_path / 'said')!r}, 'w').write(session().sparkContext.master)\n"
    )
    around = {**surroundings(tmp_path), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    command = [f"{around['SPARK_HOME']}/bin/spark-submit", "--master", "local[1]", str(script)]
    subprocess.run(command, env=around, check=True, timeout=900, capture_output=True)
    assert (tmp_path / "said").read_text() == "local[1]"


@pytest.mark.full
def test_standalone_cluster_with_two_workers(tmp_path: Path) -> None:
    """Both sides call their Python by one name; the workers' has nothing installed, not even pyarrow."""
    python = bare_python(tmp_path / "bare", ())
    around = surroundings(tmp_path)
    with standalone(first_on_path(python, around), tmp_path) as master:
        check(run_on({"SPARK_MASTER": master}, first_on_path(Path(sys.executable), around), tmp_path), python)


@pytest.mark.full
def test_spark_connect(tmp_path: Path) -> None:
    """The server plans with the Python that its executors have: it needs pyarrow, which Spark itself imports there."""
    python = bare_python(tmp_path / "bare", ("pyarrow",))
    around = surroundings(tmp_path)
    with connect_server({**around, "PYSPARK_PYTHON": str(python)}, tmp_path) as remote:
        check(run_on({"SPARK_REMOTE": remote}, around, tmp_path), python, ("pyarrow",))
