"""`check` opens transaction logs, which no walk does: what is wrong with one is told, and a sound one is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from firnline.formats.icechunk import names
from firnline.formats.icechunk.reading.repository import read_repository
from firnline.formats.icechunk.walking.roots import roots_of
from firnline.model.files import FileKind
from firnline.testing.folder_process import FolderProcess

from .repositories import STORE


@pytest.fixture(params=["version 1", "version 2"])
def folder(tmp_path: Path, small: Path, recorded: list[Path], request: pytest.FixtureRequest) -> Path:
    """A repository of its own for each test."""
    later = next(each for each in recorded if (each / names.REPO).exists())
    return Path(shutil.copytree(small if request.param == "version 1" else later, tmp_path / "copy"))


def logs_of(folder: Path) -> list[Path]:
    """Returns the logs that the history needs."""
    files = (file for _, file in roots_of(read_repository(STORE, str(folder))))
    return sorted({Path(file.key) for file in files if file.kind is FileKind.TRANSACTION_LOG})


def found(folder: Path) -> dict[Path, str]:
    """Returns what `check` says of logs. One that comes twice would be counted twice."""
    listed = FolderProcess().check(str(folder)).presence.listed
    told = [(Path(each.path), each.problem) for each in listed if each.kind == FileKind.TRANSACTION_LOG]
    assert len({path for path, _ in told}) == len(told)
    return dict(told)


def test_logs_that_the_library_wrote_are_sound(folder: Path) -> None:
    assert len(logs_of(folder)) > 3
    assert found(folder) == {}


def test_every_log_that_is_damaged_or_missing_is_a_fault(folder: Path) -> None:
    cut, other, gone, strange, *_ = logs_of(folder)
    whole = cut.read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    other.write_bytes(whole)
    gone.unlink()
    strange.write_bytes(b"?" * len(whole))
    told = found(folder)
    assert told.keys() == {cut, other, gone, strange}
    assert told[gone] == "missing"
    assert told[other] == f"cannot be read: it says that it is the log of {cut.name}"
    assert all(told[each].startswith("cannot be read: ") for each in (cut, strange))


def test_a_log_that_nobody_needs_is_not_opened(folder: Path) -> None:
    stray = folder / names.TRANSACTIONS / "1CECHNKREP0F1RSTCMT1"
    stray.write_bytes(b"")
    assert found(folder) == {}
