"""What a commit puts and takes comes from the run's record when it is carried on: forged, it would be any file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from firnline.errors import RefusedForSafety
from firnline.model.removals import Removal
from harness.disks import local
from harness.forgery import Forgery

from .small import EVERYTHING_OLD, Copy


def forged(copy: Copy) -> Forgery:
    real = copy.process().plan(copy.table, save=True, **EVERYTHING_OLD).plan
    folder = copy.process().run(str(real.run)).run.folder.folder
    made = Forgery.side_objects(folder)
    shutil.rmtree(local(folder))
    return made


def half_done(copy: Copy, made: Forgery, **moves: Any) -> None:
    """Says that a commit was begun, and notes it as begun."""
    proof = {"base": "", "location": "x", "table_folder": copy.table, "id": str(uuid4()), "note": None, "newest": {}}
    plain: dict[str, Any] = {"takes": {}, "puts": {}, "replaces": {}, "stays": [], "drops": []}
    detail = {**proof, **plain, **moves, "removal": Removal().to_json(), "forgotten": [], "history": None}
    made.say({"state": "committing", "detail": detail})
    for folder in {str(detail["table_folder"]), copy.table}:
        notes = Path(folder) / "_firnline/commits"
        notes.mkdir(parents=True, exist_ok=True)
        (notes / f"{detail['id']}.begun").write_text(json.dumps({"commit": detail["id"]}))


def precious(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "precious.txt").write_text("precious")
    return folder / "precious.txt"


def everything(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and "_firnline" not in path.parts)
    return {str(path): path.read_bytes() for path in files}


def run_of(copy: Copy, made: Forgery) -> str:
    return f"{copy.table}@{made.stamp}"


def test_a_forged_commit_takes_no_file_of_another_folder(copy: Copy, tmp_path: Path) -> None:
    made, path = forged(copy), precious(tmp_path / "theirs")
    half_done(copy, made, table_folder=str(path.parent), takes={"precious.txt": "precious"})
    before = everything(copy.folder)
    copy.process().resume(copy.table)
    with pytest.raises(RefusedForSafety, match=r"precious\.txt"):
        copy.process().advance(run_of(copy, made))
    assert path.exists()
    assert everything(copy.folder) == before


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", ["bucket-0/data-x.parquet", "manifest/manifest-x", "../theirs.txt", "x.txt"])
@pytest.mark.parametrize("move", ["takes", "puts", "replaces"])
def test_a_forged_commit_moves_nothing_but_metadata(copy: Copy, name: str, move: str) -> None:
    made = forged(copy)
    half_done(copy, made, **{move: {name: "precious"}})
    before = everything(copy.folder)
    with pytest.raises(RefusedForSafety, match="which no commit writes"):
        copy.process().advance(run_of(copy, made))
    assert everything(copy.folder) == before


def test_a_forged_commit_is_not_carried_on_unless_the_operator_names_it(copy: Copy) -> None:
    """It would take the newest snapshot away, by its right bytes."""
    made = forged(copy)
    newest = max((Path(copy.table) / "snapshot").glob("snapshot-*"))
    half_done(copy, made, takes={f"snapshot/{newest.name}": newest.read_text()})
    before = everything(copy.folder)
    (waiting,) = copy.process().resume(copy.table)
    assert "not sealed with your key" in (waiting.waits or "")
    real = copy.process().plan(copy.table, save=True, **EVERYTHING_OLD).plan
    with pytest.raises(RefusedForSafety, match="stopped halfway"):
        copy.process().commit(str(real.run))
    assert everything(copy.folder) == before


@pytest.mark.parametrize("name", ["bucket-0/data-x.parquet", "../theirs.txt", "x.txt"])
def test_a_forged_undo_writes_nothing_but_metadata(copy: Copy, name: str) -> None:
    made = forged(copy)
    gone = Removal(payload={"files": [{"path": name, "text": "mine"}], "added": {}, "earliest": {}})
    made.committed(removal=gone.to_json())
    before = everything(copy.folder)
    with pytest.raises(RefusedForSafety, match="no such file"):
        copy.process().undo(run_of(copy, made))
    assert everything(copy.folder) == before
