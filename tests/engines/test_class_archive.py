"""The first session that firnline starts leaves an archive of classes, and later ones map it: real JVMs, one each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from firnline.spark.jvm.classes import fit, sized

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("archive-of-classes")]

_START = """
from firnline.spark.session import session
context = session().sparkContext
context.parallelize([1]).count()  # from then on a thread listens to the JVM
jvm = context._gateway.proc.pid
print({line.split()[-1] for line in open(f"/proc/{jvm}/maps") if line.rstrip().endswith(".jsa")})
"""


def start(cache: Path, **more: str) -> str:
    """Returns the archives that the JVM of a new process mapped, Java's own among them."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environment = {**plain, "XDG_CACHE_HOME": str(cache), **more}
    told = subprocess.run([sys.executable, "-c", _START], env=environment, check=True, capture_output=True, text=True)
    assert "Traceback" not in told.stderr
    return told.stdout.strip().splitlines()[-1]


def kept(cache: Path) -> list[Path]:
    return sorted((cache / "firnline" / "code").iterdir())


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the first session left."""
    cache = tmp_path_factory.mktemp("cache")
    start(cache)
    (found,) = kept(cache)
    return found


def copy_of(archive: Path, cache: Path) -> Path:
    folder = cache / "firnline" / "code"
    folder.mkdir(mode=0o700, parents=True)
    copy = folder / archive.name
    os.link(archive, copy)
    return copy


@pytest.mark.full
def test_the_first_session_leaves_it_to_its_user_alone_and_a_later_one_maps_it(archive: Path) -> None:
    assert archive.stat().st_mode & 0o777 == 0o600
    assert archive.name in start(archive.parents[2])
    assert kept(archive.parents[2]) == [archive]


@pytest.mark.full
def test_one_that_others_may_write_to_is_not_mapped(archive: Path, tmp_path: Path) -> None:
    open_to_all = tmp_path / "firnline" / "code" / archive.name
    open_to_all.parent.mkdir(mode=0o700, parents=True)
    open_to_all.write_bytes(archive.read_bytes())
    open_to_all.chmod(0o666)
    assert archive.name not in start(tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("damage", ["cut", "garbage", "empty"])
def test_one_that_is_damaged_keeps_no_session_from_starting(archive: Path, tmp_path: Path, damage: str) -> None:
    whole = archive.read_bytes()
    found = {"cut": whole[: len(whole) // 2], "garbage": b"no archive" * 99, "empty": b""}[damage]
    said = len(whole if damage == "cut" else found)
    damaged = sized(tmp_path / "firnline" / "code" / str(fit()), said)
    damaged.parent.mkdir(mode=0o700, parents=True)
    damaged.write_bytes(found)
    damaged.chmod(0o600)
    start(tmp_path)


@pytest.mark.full
def test_options_of_the_user_stand_alone(archive: Path, tmp_path: Path) -> None:
    copy = copy_of(archive, tmp_path)
    assert copy.name not in start(tmp_path, SPARK_SUBMIT_OPTS="-Dmine=1")


@pytest.mark.full
def test_a_home_that_cannot_be_written_to_needs_none(tmp_path: Path) -> None:
    (tmp_path / "firnline").write_text("a file where a folder would be")
    start(tmp_path)
