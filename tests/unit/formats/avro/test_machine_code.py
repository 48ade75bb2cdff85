"""The object that holds the compiled loops: built once, kept where only its owner writes, refused when damaged."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from firnline.formats.avro import building, kernel, machine_code


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder for caches, and a package that lies where nobody may write."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kernel, "__file__", str(tmp_path / "nowhere" / "kernel.py"))
    return tmp_path / "firnline" / "code"


@pytest.mark.full
@pytest.mark.slow
def test_the_object_needs_nobody() -> None:
    """No symbol of Python or of numba is left open: LLVM would end the process when it meets one."""
    built = building.build()
    assert b"numba_" not in built
    assert b"PyErr" not in built


def test_what_is_kept_is_found_again(home: Path) -> None:
    assert machine_code.kept() is None
    machine_code.keep(b"code")
    assert machine_code.kept() == b"code"
    assert [path.suffix for path in home.iterdir()] == [".o"]
    assert home.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data[:32], lambda data: b"", lambda data: b"x" + data]
)
def test_half_an_object_is_not_run(home: Path, damage: object) -> None:
    machine_code.keep(b"code")
    (path,) = home.iterdir()
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    assert machine_code.kept() is None


def test_a_folder_that_others_may_write_to_is_not_trusted(home: Path) -> None:
    machine_code.keep(b"code")
    home.chmod(0o777)
    assert machine_code.kept() is None


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
def test_the_object_is_written_by_its_owner_alone_whatever_the_umask(home: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        machine_code.keep(b"code")
    finally:
        os.umask(before)
    (path,) = home.iterdir()
    assert path.stat().st_mode & 0o777 == 0o644
    assert machine_code.kept() == b"code"


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_an_object_that_others_may_write_is_not_run(home: Path, mode: int) -> None:
    machine_code.keep(b"code")
    (path,) = home.iterdir()
    path.chmod(mode)
    assert machine_code.kept() is None


def test_a_link_to_an_object_is_not_run(home: Path, tmp_path: Path) -> None:
    machine_code.keep(b"code")
    (path,) = home.iterdir()
    path.rename(tmp_path / "elsewhere.o")
    path.symlink_to(tmp_path / "elsewhere.o")
    assert machine_code.kept() is None


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
def test_a_package_whose_compiled_files_others_may_replace_keeps_no_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    monkeypatch.setattr(kernel, "__file__", str(tmp_path / "kernel.py"))
    side_objects = tmp_path / "__pycache__"
    side_objects.mkdir(mode=0o755)
    machine_code.keep(b"code")
    assert machine_code.kept() == b"code"
    side_objects.chmod(mode)
    assert machine_code.kept() is None
    machine_code.keep(b"other code")
    assert len(list(side_objects.iterdir())) == 1


def test_a_link_to_a_folder_is_not_trusted(home: Path) -> None:
    machine_code.keep(b"code")
    home.rename(home.with_name("elsewhere"))
    home.symlink_to(home.with_name("elsewhere"))
    assert machine_code.kept() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_work_of_somebody_else_is_not_run(home: Path) -> None:
    machine_code.keep(b"code")
    (path,) = home.iterdir()
    os.chown(path, 12_345, -1)
    assert machine_code.kept() is None


def test_no_place_to_keep_anything_is_no_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    machine_code.keep(b"code")
    assert machine_code.kept() is None


def test_other_code_has_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = machine_code._fingerprint()
    machine_code._fingerprint.cache_clear()
    monkeypatch.setattr(machine_code, "_source", lambda module: b"other code")
    assert machine_code._fingerprint() != before
    machine_code._fingerprint.cache_clear()


def test_arrays_of_another_type_are_refused() -> None:
    """Bare addresses say nothing of what lies there: 32-bit numbers read as 64-bit ones would be another's memory."""
    gather = machine_code.load()["gather"]
    places, lengths, out = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int32), np.zeros(1, dtype=np.uint8)
    assert gather(b"x", 1, places, lengths, out) == 1
    assert bytes(out) == b"x"
    wrong = [
        (b"x", 1, places.astype(np.int32), lengths, out),
        (b"x", 1, places, lengths.astype(np.int64), out),
        (b"x", 1, np.zeros((2, 2), dtype=np.int64)[:, 0], lengths, out),
        (b"x", 1, places, lengths, bytearray(1)),
        ("x", 1, places, lengths, out),
    ]
    for arguments in wrong:
        with pytest.raises(Exception, match=r".") as raised:
            gather(*arguments)
        assert type(raised.value).__name__ in ("ArgumentError", "TypeError")
