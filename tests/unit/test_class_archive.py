"""Which options the JVM of a session gets; tests/engines/test_class_archive.py starts real ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firnline.cli.terminal.opening import lake_of, looking_lake
from firnline.lake import open_lake
from firnline.spark.jvm import classes
from firnline.spark.jvm.classes import BUFFERS, LAUNCHER_OPTIONS, OPTIONS, QUICK_COMPILER, fit, quick_start, sized


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where archives lie, of a user whose environment says nothing of JVMs and has a Java."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    for name in (OPTIONS, LAUNCHER_OPTIONS, "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(classes.SparkContext, "_gateway", None)
    monkeypatch.setattr("atexit.register", lambda *_: None)
    folder = tmp_path / "cache" / "firnline" / "code"
    folder.mkdir(mode=0o700, parents=True)
    return folder


def an_archive(code: Path, mode: int = 0o600) -> Path:
    archive = sized(code / str(fit()), len(b"classes"))
    archive.write_bytes(b"classes")
    archive.chmod(mode)
    return archive


def asked(*, brief: bool = False) -> str:
    """Returns the options while a session starts; afterwards the environment is as it was."""
    before = dict(os.environ)
    with quick_start(brief=brief):
        said = os.environ.get(OPTIONS, "")
    assert dict(os.environ) == before
    return said


def test_the_first_one_writes_it_under_another_name(code: Path) -> None:
    said = asked()
    assert f"-XX:ArchiveClassesAtExit={code}/.half-" in said
    assert "SharedArchiveFile" not in said


def test_a_later_one_maps_it(code: Path) -> None:
    assert f"-XX:SharedArchiveFile={an_archive(code)}" in asked()


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_one_that_others_may_write_to_is_left_alone(code: Path, mode: int) -> None:
    an_archive(code, mode)
    assert asked() == BUFFERS


def test_so_is_any_in_a_folder_that_others_may_write_to(code: Path) -> None:
    an_archive(code)
    code.chmod(0o777)
    assert asked() == BUFFERS


def test_a_link_is_not_followed(code: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "theirs"
    elsewhere.write_bytes(b"classes")
    sized(code / str(fit()), len(str(elsewhere))).symlink_to(elsewhere)
    assert asked() == BUFFERS


def test_one_that_was_cut_short_is_not_mapped_but_made_anew(code: Path) -> None:
    """A JVM dies of it, where it cannot have the archive at the addresses for which that was written."""
    archive = an_archive(code)
    archive.write_bytes(b"class")
    assert "SharedArchiveFile" not in asked()
    assert "ArchiveClassesAtExit" in asked()
    assert not archive.exists()


def test_whatever_is_mapped_rows_reach_a_java_after_23(code: Path) -> None:
    assert BUFFERS in asked()
    an_archive(code)
    assert BUFFERS in asked()


def test_options_of_the_user_stand_alone(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    an_archive(code)
    monkeypatch.setenv(OPTIONS, "-Dmine=1")
    assert asked() == "-Dmine=1"


def test_one_for_a_single_command_compiles_quickly(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert QUICK_COMPILER in asked(brief=True)
    an_archive(code)
    assert "SharedArchiveFile" in asked(brief=True)
    assert QUICK_COMPILER in asked(brief=True)
    assert QUICK_COMPILER not in asked()
    code.chmod(0o777)
    assert asked(brief=True) == f"{BUFFERS} {QUICK_COMPILER}"
    monkeypatch.setenv(OPTIONS, "-Dmine=1")
    assert asked(brief=True) == "-Dmine=1"


def test_one_with_which_no_session_starts_is_removed(code: Path) -> None:
    archive = an_archive(code)
    with pytest.raises(RuntimeError), quick_start():
        raise RuntimeError("the JVM died")
    assert not archive.exists()


def test_a_java_of_another_make_gets_none(code: Path, tmp_path: Path) -> None:
    (tmp_path / "jdk" / "release").write_text('IMPLEMENTOR="Someone"\nJVM_VARIANT="OpenJ9"\n')
    assert fit() is None
    assert asked() == BUFFERS


def test_what_a_killed_process_left_is_removed_in_time(code: Path) -> None:
    left, fresh = (code / f".half-{letter * 32}" for letter in "ab")
    for each in (left, fresh):
        each.write_bytes(b"half")
    os.utime(left, (0, 0))
    asked()
    assert not left.exists()
    assert fresh.exists()


def test_only_a_command_has_a_session_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert looking_lake(None, "spark", as_json=True).places.engines.brief
    assert lake_of(None, "spark", as_json=True).places.engines.brief
    assert not open_lake().places.engines.brief
