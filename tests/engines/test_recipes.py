"""The recipes of the page about clusters, run as the page has them: only hosts and the place of Spark are this machine's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import firnline
from demo import lake
from firnline.spark.shipping import distributions
from tests.docs.pages import DOCS, blocks

from .clusters import INSTALLED, SOURCE, Cluster, first_on_path, python_without, surroundings

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("clusters")]
full = pytest.mark.skipif(not os.environ.get("FIRNLINE_FULL"), reason="runs with FIRNLINE_FULL=1 (make test-full)")
PAGE = DOCS / "guides" / "clusters.md"
MASTER, TABLE = "spark://spark.internal:7077", "lake.artemis.telemetry"


def recipe(*words: str, language: str = "sh") -> str:
    """Returns the one block of the page that has all of these words."""
    (found,) = [block for block in blocks(PAGE, language) if all(word in block for word in words)]
    return found


@pytest.fixture(scope="module")
def tiny_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lake, the page's job, and a policy by which files would go."""
    folder: Path = tmp_path_factory.mktemp("lake")
    lake.build(folder, int((time.time() - 40 * 86_400) * 1000), days=2)
    (folder / "firnline.yaml").write_text("keep: {last: 1}\n")
    (folder / "job.py").write_text(recipe("several(sys.argv[1:])", language="py"))
    return folder


@pytest.fixture
def inside(tiny_lake: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The surroundings of a submitted job, in a folder that has the lake: its driver's Python has no firnline."""
    around = {**surroundings(tmp_path), "PYICEBERG_HOME": str(tiny_lake)}
    driver = python_without(tmp_path / "driver")
    around["PATH"] = f"{around['SPARK_HOME']}/bin{os.pathsep}{around['PATH']}"
    yield {**first_on_path(Path(sys.executable), around), "PYSPARK_DRIVER_PYTHON": str(driver)}


def run(block: str, folder: Path, around: Mapping[str, str], **hosts: str) -> list[str]:
    """Returns the lines that the commands of a block printed; fails with all that they said if one fails."""
    for name, real in hosts.items():
        assert name in block
        block = block.replace(name, real)
    command = ["bash", "-euc", block]
    ran = subprocess.run(
        command, cwd=folder, env=dict(around), capture_output=True, text=True, timeout=900, check=False
    )
    assert ran.returncode == 0, ran.stdout[-2_000:] + ran.stderr[-6_000:]
    return ran.stdout.splitlines()


def planned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns the line that the job must print: what the local engine plans."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYICEBERG_HOME", str(folder))
    files = firnline.open(engine="local").plan(TABLE).plan.victims.all.files
    assert files
    return f"{TABLE} {files}"


def test_firnline_as_a_zip(
    tiny_lake: Path, inside: dict[str, str], small_standalone: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors have neither firnline nor all that it needs; the driver's Python has no firnline."""
    block = recipe("zipfile", "--py-files")
    assert planned(tiny_lake, monkeypatch) in run(block, tiny_lake, inside, **{MASTER: small_standalone.master})


@full
def test_a_packed_environment(
    tiny_lake: Path, inside: dict[str, str], small_standalone: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is made here of what is installed, in place of the page's `pip install`."""
    assert "-m venv env" in recipe("pip install firnline")
    environment(tiny_lake / "env")
    block = recipe("tar", "--archives", MASTER)
    assert planned(tiny_lake, monkeypatch) in run(block, tiny_lake, inside, **{MASTER: small_standalone.master})
    assert not list(Path(inside["XDG_CACHE_HOME"]).rglob("*.tar.gz")), "something was sent, though all was there"


def environment(folder: Path) -> None:
    """Makes an environment with firnline and what it needs, by links to files: `tar` packs them as files."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for each in distributions().values():
        for file in each.files or ():
            source = Path(str(each.locate_file(file)))
            if ".." not in file.parts and source.is_file():
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                os.link(source.resolve(), site / file)
    (site / "firnline").symlink_to(Path(SOURCE) / "firnline")
    (site / "pyspark").symlink_to(INSTALLED)
