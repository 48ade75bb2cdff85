"""Looking changes nothing: not a byte, not a time, not a name; saving a plan adds its record and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet
import pytest

import firnline
from firnline.caches import disk, opening
from firnline.cli.main import run

TABLES = ("registry", "telemetry", "config")
LOOKS = (
    ["plan"],
    ["plan", "--json"],
    ["plan", "--list"],
    ["plan", "--keep-last", "1"],
    ["policy", "show"],
    ["policy", "show", "--json"],
)


def everything(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Returns content, time and mode of every file and folder: a file that came and went shows in its folder's time."""
    seen = {}
    for place, _, names in os.walk(folder):
        for path in (Path(place), *(Path(place, name) for name in names)):
            status = path.stat()
            content = "" if path.is_dir() else sha256(path.read_bytes()).hexdigest()
            seen[str(path)] = (content, status.st_mtime_ns, status.st_mode)
    return seen


@pytest.mark.sampled(2)
@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
@pytest.mark.parametrize("table", TABLES)
def test_looking_at_a_table_changes_nothing(
    in_lake: Path, table: str, look: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = everything(in_lake)
    assert run([*look, f"lake.artemis.{table}"]) == 0
    assert capsys.readouterr().out
    assert everything(in_lake) == before


def test_listing_the_tables_changes_nothing(in_lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = everything(in_lake)
    assert run(["tables", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"tables": sorted(f"lake.artemis.{name}" for name in TABLES)}
    assert run(["policy", "check"]) == 0
    assert everything(in_lake) == before


def test_asking_why_changes_nothing(in_lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    view = firnline.open().plan("lake.artemis.telemetry", keep={"within": "1d", "last": "1", "daily": "off"})
    questions = [view.plan.expire[0].id, view.plan.keep[-1].id, "main", next(view.files())["path"]]
    before = everything(in_lake)
    for what in questions:
        assert run(["why", "lake.artemis.telemetry", what]) == 0
    assert capsys.readouterr().out.count("snapshot") >= len(questions)
    assert everything(in_lake) == before


def test_a_list_of_files_is_the_only_thing_that_asking_for_one_writes(in_lake: Path, tmp_path: Path) -> None:
    before = everything(in_lake)
    out = tmp_path / "gone.parquet"
    assert run(["plan", "lake.artemis.registry", "--keep-last", "1", "--keep-within", "1d", "--files", str(out)]) == 0
    assert everything(in_lake) == before
    assert [path.name for path in tmp_path.iterdir()] == ["gone.parquet"]


def hostile(folder: Path) -> dict[Path, bytes]:
    """Fills a folder with what is older and larger than any entry, under names that look much like entries."""
    digest = sha256(b"theirs").hexdigest()
    names = [f"{inner}/{each}" for inner in ("us", "de", "ab", digest[:2]) for each in ("a.pdf", ".x", digest, "ab/b")]
    files = {folder / name: name.encode() * 4_000 for name in (*names, "pruned", "firnline-units.txt", "lease/a.pdf")}
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (0, 0))
    return files


def test_a_plan_removes_nothing_but_its_own_cache_entries(
    in_lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even where it was told to remember in a folder full of other files, and has no room left there."""
    files = hostile(tmp_path)
    monkeypatch.setenv("FIRNLINE_CACHE", str(tmp_path))
    monkeypatch.setattr(disk.DiskCache.__init__, "__defaults__", (2_000,))
    removed: list[Path] = []
    sys.addaudithook(lambda event, args: removed.append(Path(os.fsdecode(args[0]))) if event == "os.remove" else None)
    for _ in range(3):
        assert run(["plan", "lake.artemis.registry", "--keep-last", "1", "--keep-within", "1d"]) == 0
    assert capsys.readouterr().out
    assert removed, "there was no room, so entries had to go"
    assert {path.parents[2] for path in removed} == {tmp_path / opening.OWN}
    assert {path: path.read_bytes() for path in files} == files


@pytest.fixture
def records(lake: Path) -> Iterator[Path]:
    """Where the registry's runs are recorded, taken away again afterwards."""
    folder = lake / "warehouse" / "artemis" / "registry" / "_firnline"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_saving_a_plan_adds_only_its_record(
    in_lake: Path, records: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))  # the secret that seals it is this user's
    before = everything(in_lake)
    options = ["--keep-within", "2d", "--keep-monthly", "off", "--keep-tag", "none-*"]
    assert run(["plan", "lake.artemis.registry", *options, "--save", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    after = everything(in_lake)
    added = after.keys() - before.keys()
    assert all(Path(path).is_relative_to(records) for path in added)
    changed = {path for path in before if after.get(path) != before[path]}
    assert changed == {str(records.parent)}, "only the folder that got the record's folder has another time"

    (folder,) = (records / "runs").iterdir()
    assert said["run"] == f"lake.artemis.registry@{folder.name}"
    plan = json.loads((folder / "plan.json").read_text())
    assert plan | said == plan, "the record says all that was shown, and what a resumed run needs besides"
    listed = pyarrow.parquet.read_table(folder / "victims").to_pylist()
    assert said["victims"]["files"] == len(listed) > 0
    assert said["victims"]["bytes"] == sum(row["size"] for row in listed)
    units = pyarrow.parquet.read_table(folder / "walked").to_pylist()
    assert {row["kind"] for row in units} == {"manifest", "manifest-list"}
    assert {row["key"] for row in units}.isdisjoint(row["key"] for row in listed)


def test_the_written_list_is_in_the_order_of_deletion(in_lake: Path, records: Path) -> None:
    firnline.open().plan("lake.artemis.registry", keep={"within": "2d", "monthly": "off", "tags": "none-*"}, save=True)
    (folder,) = (records / "runs").iterdir()
    parts = sorted((folder / "victims").iterdir())
    kinds = [kind for part in parts for kind in pyarrow.parquet.read_table(part).column("kind").to_pylist()]
    assert [kind for place, kind in enumerate(kinds) if place == 0 or kinds[place - 1] != kind] == [
        "data",
        "manifest",
        "manifest-list",
    ]
