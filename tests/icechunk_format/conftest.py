"""The repositories of these tests: written by the installed library, and those that a later one wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from .growing import grown, storage
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
