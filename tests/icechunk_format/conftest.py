"""The repositories of these tests: written by the installed library, and those that a later one wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .growing import LIBRARY, SPECS, grown, storage
from .open_writing import Scene, copied, old_repository
from .repositories import unpacked


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return unpacked(tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of version 1, which no test changes."""
    folder = tmp_path_factory.mktemp("small") / "repo-1"
    grown(storage(folder), 7, 1, steps=20)
    return folder


@pytest.fixture(scope="session", params=SPECS)
def written(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> tuple[Path, set[str]]:
    """A repository with an old history, and the chunks that a session left in it. A module may have another one."""
    folder = tmp_path_factory.mktemp("open") / "r"
    return folder, old_repository(folder, request.param)


@pytest.fixture
def copies(written: tuple[Path, set[str]], tmp_path: Path) -> Callable[[], Scene]:
    """Makes a copy at every call."""
    numbers = iter(range(10_000))
    return lambda: copied(*written, tmp_path / str(next(numbers)))


@pytest.fixture
def scene(copies: Callable[[], Scene]) -> Scene:
    return copies()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Says which library the interpreter has, and which versions of the format it writes."""
    written = " and ".join(map(str, SPECS))
    library = ".".join(map(str, LIBRARY))
    item.user_properties.append(
        ("count: tests of Icechunk", {f"with icechunk {library}, writing version {written}": 1})
    )
