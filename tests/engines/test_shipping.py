"""What is packed for executors, and what they make of it. That it works on clusters: `test_clusters.py`."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from importlib.metadata import PathDistribution
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.cloudpickle import dumps, register_pickle_by_value
from pyspark.errors import PySparkException

from firnline.arrival import PACKED, use_packed
from firnline.errors import UsageError
from firnline.spark import looking
from firnline.spark.executors import shipping
from firnline.spark.executors import shipping as packing
from firnline.spark.executors.shipping import NEEDED, Lack, distributions, lack_of, modules, pack
from firnline.spark.looking import Seen, digest, looker, seen
from firnline.spark.telling import said_by

HERE: Seen = {"platform": "here", "missing": [], "firnline": "this"}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two modules, and a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = tmp_path / "firnline"
    (made / "deep").mkdir(parents=True)
    (made / "__init__.py").write_text("WORD = 1\n")
    (made / "deep" / "__init__.py").write_text("")
    (made / "__pycache__").mkdir()
    (made / "__pycache__" / "x.py").write_text("never mind")
    return made


@pytest.mark.parametrize("same", [True, False])
def test_a_session_of_a_users_own_may_run_another_python(
    same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "python3"
    other.symlink_to(Path(sys.executable).resolve())  # what a virtual environment has too: the folder tells them apart
    monkeypatch.setenv("PATH", str(tmp_path))
    context = SimpleNamespace(pythonExec=sys.executable if same else "python3")
    assert packing._runs_this_python(SimpleNamespace(sparkContext=context)) is same  # type: ignore[arg-type]


def test_what_a_package_requires_comes_with_it() -> None:
    found = distributions(["boto3", "no-such-package-anywhere"])
    assert {"boto3", "botocore", "urllib3"} <= found.keys()
    assert "no-such-package-anywhere" not in found


def test_everything_that_is_needed_is_installed_here_and_known_by_its_modules() -> None:
    found = distributions()
    assert set(NEEDED) <= found.keys()
    assert modules(found["arro3-core"]) == {"arro3"}
    assert modules(found["python-dateutil"]) == {"dateutil"}
    assert seen([name for each in found.values() for name in modules(each)])["missing"] == []


def test_an_archive_has_the_code_and_the_packages_and_is_made_once(package: Path) -> None:
    six = distributions(["six"])["six"]
    made = pack(package, [six], digest(str(package)))
    with tarfile.open(made) as archive:
        names = set(archive.getnames())
    assert {"__init__.py", "deep/__init__.py", f"{PACKED}/six.py"} <= names
    assert not any("__pycache__" in name for name in names)
    before = made.stat().st_ino
    assert pack(package, [six], digest(str(package))).stat().st_ino == before
    assert pack(package, [], digest(str(package))) != made


def test_an_archive_is_whole_before_it_has_its_name(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that is killed right then would leave half of one that every later driver sends."""
    real, looked_at = os.replace, []

    def looking(source: str, target: Path) -> None:
        with tarfile.open(source) as archive:
            looked_at.append(archive.getnames())
        real(source, target)

    monkeypatch.setattr(os, "replace", looking)
    pack(package, [], "one")
    assert looked_at == [["__init__.py", "deep/__init__.py"]]


def test_half_an_archive_is_not_left_behind(package: Path, tmp_path: Path) -> None:
    class Full(Exception):
        pass

    def breaking() -> Iterator[tuple[str, Path]]:
        raise Full
        yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_installed", lambda chosen: breaking())
        with pytest.raises(Full):
            pack(package, [], "one")
    assert list((tmp_path / "cache").rglob("*.*")) == []


def test_files_of_a_package_that_somebody_removed_are_left_out(tmp_path: Path) -> None:
    about = tmp_path / "odd-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: odd\nVersion: 1\n")
    (about / "RECORD").write_text("odd.py,,\nlost.py,,\n")
    (tmp_path / "odd.py").write_text("")
    assert modules(PathDistribution(about)) == {"odd"}


def test_a_cache_that_cannot_be_written_is_told_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(UsageError, match="cannot be packed") as refused:
        shipping._packed([])
    assert "XDG_CACHE_HOME" in refused.value.hint


def test_archives_that_nobody_used_for_a_month_go(package: Path) -> None:
    made = pack(package, [], "one")
    os.utime(made, (0, 0))
    pack(package, [], "two")
    assert not made.exists()


def test_files_that_no_driver_wrote_stay_among_the_archives(package: Path) -> None:
    folder = pack(package, [], "one").parent
    theirs = [folder / name for name in ("thesis.tar.gz", "firnline-notes.txt", ".profile", "firnline-0123.tar.gz")]
    for path in theirs:
        path.write_text("mine")
        os.utime(path, (0, 0))
    pack(package, [], "two")
    assert all(path.exists() for path in theirs)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda path: path.write_bytes(b"another archive"), id="other bytes"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:-9]), id="cut short"),
        pytest.param(lambda path: path.chmod(0o666), id="all may write it"),
        pytest.param(lambda path: path.chmod(0o660), id="the group may write it"),
        pytest.param(lambda path: (path.rename(path.parent / "a"), path.symlink_to(path.parent / "a")), id="a link"),
    ],
)
def test_an_archive_that_is_not_as_it_was_packed_is_packed_anew(
    package: Path, change: Callable[[Path], object]
) -> None:
    made = pack(package, [], "one")
    content = made.read_bytes()
    change(made)
    again = pack(package, [], "one")
    with tarfile.open(again) as archive:
        assert archive.getnames() == ["__init__.py", "deep/__init__.py"]
    assert not again.is_symlink()
    assert again.stat().st_mode & 0o777 == 0o600
    assert len(content)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_an_archive_of_somebody_else_is_not_sent(package: Path) -> None:
    made = pack(package, [], "one")
    os.chown(made, 12_345, -1)
    assert pack(package, [], "one").stat().st_uid == os.geteuid()


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777])
def test_a_folder_that_others_may_write_to_holds_no_archives(package: Path, mode: int) -> None:
    made = pack(package, [], "one")
    made.parent.chmod(mode)
    with pytest.raises(UsageError, match="others may write to it") as refused:
        shipping._packed([])
    assert "XDG_CACHE_HOME" in refused.value.hint


def test_the_digest_is_that_of_the_code(package: Path) -> None:
    first = digest(str(package))
    (package / PACKED).mkdir()
    (package / PACKED / "six.py").write_text("")
    assert digest(str(package)) == first
    (package / "deep" / "__init__.py").write_text("WORD = 2\n")
    assert digest(str(package)) != first


@pytest.fixture
def zipped(package: Path, tmp_path: Path) -> Path:
    """The package as it lies in a zip, as `--py-files` sends it."""
    with zipfile.ZipFile(tmp_path / "sent.zip", "w") as archive:
        for path in sorted(package.rglob("*"), reverse=True):  # in another order than that of a folder
            archive.write(path, path.relative_to(tmp_path))
        archive.writestr("another/__init__.py", "WORD = 3\n")
    return tmp_path / "sent.zip" / "firnline"


def test_code_in_a_zip_has_the_digest_of_its_folder(package: Path, zipped: Path) -> None:
    assert digest(str(zipped)) == digest(str(package))
    (package / "deep" / "__init__.py").write_text("WORD = 2\n")
    assert digest(str(zipped)) != digest(str(package))


def test_code_in_a_zip_is_packed_as_that_of_a_folder(zipped: Path) -> None:
    with tarfile.open(pack(zipped, [], "one")) as archive:
        assert archive.getnames() == ["__init__.py", "deep/__init__.py"]
        code = archive.extractfile("__init__.py")
        assert code is not None
        assert code.read() == b"WORD = 1\n"


def test_packages_that_came_beside_a_zip_are_found(zipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark puts the zip of `--py-files` on the path before the folder that it unpacks what was packed to."""
    before = list(sys.path)
    monkeypatch.setattr(sys, "path", list(before))
    use_packed(str(zipped))
    assert sys.path == before
    came = zipped.parents[1] / "firnline" / PACKED
    came.mkdir()
    use_packed(str(zipped))
    assert sys.path == [*before, str(came)]


def test_packages_that_came_are_found_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(sys.path)
    monkeypatch.setattr(sys, "path", list(before))
    use_packed(str(tmp_path))
    assert sys.path == before
    (tmp_path / PACKED).mkdir()
    use_packed(str(tmp_path))
    use_packed(str(tmp_path))
    assert sys.path == [*before, str(tmp_path / PACKED)]


def test_a_python_without_firnline_can_say_what_it_has() -> None:
    register_pickle_by_value(looking)
    function = dumps(looker(["json", "no_such_module_anywhere"]))
    code = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read())(0))"
    zips = [path for path in sys.path if path.endswith("site-packages")]
    bare = f"import sys; sys.path += {zips!r}; sys.modules['firnline'] = None; {code}"
    ran = subprocess.run([sys.executable, "-S", "-c", bare], input=function, capture_output=True, check=False)
    assert b"no_such_module_anywhere" in ran.stdout, ran.stderr
    assert b"json" not in ran.stdout


def test_what_any_executor_lacks_is_lacking() -> None:
    assert lack_of([HERE, HERE], HERE) == Lack(code=False, modules=frozenset())
    other: Seen = {"platform": "here", "missing": ["numba"], "firnline": None}
    assert lack_of([HERE, other], HERE) == Lack(code=True, modules=frozenset({"numba"}))


def test_another_platform_gets_code_but_no_packages() -> None:
    elsewhere: Seen = {"platform": "elsewhere", "missing": [], "firnline": "old"}
    assert lack_of([elsewhere], HERE) == Lack(code=True, modules=frozenset())
    with pytest.raises(UsageError, match="lack obstore, and") as refused:
        lack_of([{**elsewhere, "missing": ["obstore", "numba"]}], HERE)
    assert "spark.archives" in refused.value.hint


def test_what_only_makes_decoding_fast_is_done_without_on_another_platform() -> None:
    elsewhere: Seen = {"platform": "elsewhere", "missing": ["numba", "llvmlite", "isal"], "firnline": "this"}
    assert lack_of([HERE, elsewhere], HERE) == Lack(code=False, modules=frozenset())


def test_why_python_failed_there_is_told_in_one_line() -> None:
    trace = (
        "Traceback:\n  File x\nbase.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] 3.12 than 3.11\nPlease check.\n\n"
    )
    assert said_by(PySparkException(trace)).endswith("3.12 than 3.11")
    assert said_by(PySparkException("no executor\n")) == "no executor"
