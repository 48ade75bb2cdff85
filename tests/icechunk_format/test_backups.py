"""Earlier versions of `repo`: they go by a retention of their own, and stay for ever where none is set."""

from __future__ import annotations

import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from firnline.errors import CollectionForbidden, PolicyError
from firnline.formats.icechunk import names
from firnline.model.files import FileKind
from firnline.model.times import DAY_MS
from firnline.ports.listings import ObjectClass
from firnline.testing.dated import Clock, date
from firnline.testing.folder_process import FolderProcess

MEANT: dict[str, Any] = {"grace": "0s", "consent": lambda plan: True, "blast_radius": 1.0}


@pytest.fixture
def aged(recorded: list[Path], tmp_path: Path) -> Path:
    """A repository of version 2 whose backups are 30 days old, but for the newest, of 10 days."""
    source = max(recorded, key=lambda each: len(backups(each)))
    folder = tmp_path / "r"
    shutil.copytree(source, folder)
    for number, name in enumerate(backups(folder)):
        date(folder / names.OVERWRITTEN / name, now_ms() - (10 if number == 0 else 30) * DAY_MS)
    return folder


def backups(folder: Path) -> list[str]:
    """Returns their names, the newest first: each begins with how long it is until a far year."""
    below = folder / names.OVERWRITTEN
    return sorted(each.name for each in below.iterdir()) if below.is_dir() else []


def now_ms() -> float:
    return datetime.now(UTC).timestamp() * 1000


def test_without_a_retention_all_stay(aged: Path) -> None:
    before = backups(aged)
    plan, _ = FolderProcess().orphans(str(aged), **MEANT)
    assert backups(aged) == before
    assert "backup" not in {kind.value for kind in plan.victims.by_kind}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("said", "left"), [("20d", 1), ("5d", 0), ("60d", None), ("forever", None)])
def test_what_is_older_than_its_retention_goes(aged: Path, said: str, left: int | None) -> None:
    before = backups(aged)
    assert len(before) > 2
    stranger = aged / names.OVERWRITTEN / "repo.not-ours"
    stranger.write_bytes(b"")
    date(stranger, now_ms() - 90 * DAY_MS)
    FolderProcess(policy=f"backups: {said}").orphans(str(aged), **MEANT)
    assert backups(aged) == sorted([*(before if left is None else before[:left]), stranger.name])


def test_a_search_that_is_asked_for_less_keeps_to_it(aged: Path) -> None:
    """An age that the operator names is never undercut: what is younger stays, backup or not."""
    plan, _ = FolderProcess(policy="backups: 1d").orphans(str(aged), older_than="2020-01-01T00:00:00Z", **MEANT)
    assert not plan.victims.all.files
    assert plan.classes[ObjectClass.YOUNG].files >= len(backups(aged))


@pytest.mark.parametrize("whole", [True, False], ids=["folder", "table"])
def test_a_hold_that_came_since_keeps_them_too(aged: Path, whole: bool) -> None:
    clock = Clock()
    before, process = backups(aged), FolderProcess(clock=clock, policy="backups: 20d")
    place, also = (str(aged.parent), (str(aged),)) if whole else (str(aged), ())
    plan, ended = process.orphans(place, also=also, grace="1h", consent=lambda plan: True, blast_radius=1.0)
    assert ended is not None
    assert plan.victims.by_kind[FileKind.BACKUP].files == len(before) - 1
    notes = aged / "_firnline"
    notes.mkdir(exist_ok=True)
    (notes / "properties.json").write_text('{"gc.enabled": "false"}')
    clock.advance(2 * 3_600_000)
    with suppress(CollectionForbidden):  # of a table by itself; in a folder of several the files are spared
        process.purge(str(ended.run.id))
    assert backups(aged) == before


def test_a_word_that_is_no_duration_is_refused() -> None:
    with pytest.raises(PolicyError, match="backups"):
        FolderProcess(policy="backups: often")
