"""A search of several Paimon tables: one listing and one walk, and the answer that each gives alone."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from firnline.errors import FirnlineError
from firnline.formats.paimon.table import PaimonFormat
from firnline.stores.ranges import ObjectRanges
from firnline.testing.dated import copy_dated
from firnline.testing.folder_process import FolderProcess
from harness.crowds import Crowd

from .aged import age, disk, strays
from .small import Copy

TABLES = 3


def plain(plan: Any) -> dict[str, Any]:
    return {name: said for name, said in plan.to_json().items() if name not in ("now", "older_than", "run")}


@pytest.fixture
def several(copy: Copy) -> list[Copy]:
    """Tables in one folder, each with strays of its own."""
    age(disk(copy.folder))
    copies = []
    for number in range(TABLES):
        target = copy.folder / f"copy-{number}"
        shutil.copytree(copy.folder / "t", target / "t", copy_function=copy_dated)
        age(disk(target))
        copies.append(Copy(target, copy.clock))
        strays(copies[-1])
    return copies


def together(process: Any, *tables: str, **asked: Any) -> list[Any]:
    """Returns what a search of all says of each: its plan, or what stopped it."""
    answers = process.several(tables).orphans(**{"dry_run": True, "blast_radius": 1.0, **asked})
    assert [each.table for each in answers] == list(tables)
    return [each.problem if each.value is None else plain(each.value.plan) for each in answers]


def alone(process: Any, *tables: str) -> list[Any]:
    return [plain(process.orphans(table, dry_run=True, blast_radius=1.0)[0]) for table in tables]


def test_several_paimon_tables_answer_as_each_does_alone(several: list[Copy]) -> None:
    tables = [each.table for each in several]
    process = several[0].process()
    found = together(process, *tables)
    assert found == alone(process, *tables)
    assert all(each["victims"]["files"] for each in found)
    assert all(each["tables"] == 1 for each in found)


def test_a_paimon_table_that_cannot_be_read_stops_no_other(several: list[Copy]) -> None:
    tables = [each.table for each in several]
    manifest = next(path for path in (Path(tables[1]) / "manifest").iterdir() if path.name.startswith("manifest-list"))
    whole = together(several[0].process(), *tables)
    for path in (Path(tables[1]) / "manifest").iterdir():
        if path.name.startswith(("manifest-list", "manifest-")) and path.stat().st_size > len(b"nobody's"):
            path.write_bytes(b"")
    assert manifest.exists()
    found = together(several[0].process(), *tables)
    assert isinstance(found[1], FirnlineError)
    assert [found[0], found[2]] == [whole[0], whole[2]]
    (Path(tables[1]) / "schema" / "schema-0").write_text("{")
    found = together(several[0].process(), *tables)
    assert isinstance(found[1], FirnlineError)
    assert [found[0], found[2]] == [whole[0], whole[2]]


@pytest.mark.full
def test_what_goes_of_several_paimon_tables_are_their_strays(several: list[Copy]) -> None:
    tables = [each.table for each in several]
    kept = {path: Path(path).read_bytes() for each in several for path in disk(each.folder)}
    planned = alone(several[0].process(), *tables)
    said = {"dry_run": False, "grace": "0s", "confirm": lambda plans: True}
    found = together(several[0].process(), *tables, **said)
    assert [each["victims"] for each in found] == [each["victims"] for each in planned]
    gone = len(kept) - len(disk(*(each.folder for each in several)))
    assert gone == sum(each["victims"]["files"] for each in planned)
    assert all(not each.missing() for each in several)


def test_tables_of_both_formats_are_searched_together(several: list[Copy], tmp_path: Path) -> None:
    """Paimon's tables are known by their folders and count for themselves; the catalog's count for all."""
    crowd = Crowd.make(tmp_path)
    crowd.table("one")
    crowd.table("two")
    for name in ("one", "two"):
        crowd.stray(f"{name}/data/left.parquet")
    tables = [crowd.name("one"), several[0].table, crowd.name("two"), several[1].table]
    process = crowd.process()
    found = together(process, *tables)
    assert found == alone(process, *tables)
    assert all(each["victims"]["files"] for each in found)


@contextmanager
def looks() -> Iterator[Counter[str]]:
    """Counts states that are loaded and pieces that are listed."""
    made: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patched:
        for of, verb in ((PaimonFormat, "load"), (ObjectRanges, "batches")):
            act = getattr(of, verb)

            def done(*said: Any, act: Any = act, verb: str = verb) -> Any:
                made[verb] += 1
                return act(*said)

            patched.setattr(of, verb, done)
        yield made


def test_each_paimon_table_is_loaded_as_often_however_many_there_are(several: list[Copy]) -> None:
    loads = []
    for some in (several[:2], several):
        with looks() as made:
            together(several[0].process(), *(each.table for each in some))
        loads.append(made["load"] / len(some))
    assert loads == [2, 2], "where it is, before the listing; what it needs, after that"


@pytest.mark.full
def test_a_folder_among_tables_is_searched_by_itself(several: list[Copy], tmp_path: Path) -> None:
    folder = tmp_path / "nothing"
    folder.mkdir()
    process: FolderProcess = several[0].process()
    tables = [several[0].table, str(folder), several[1].table]
    found = together(process, *tables)
    assert found == alone(process, *tables)
