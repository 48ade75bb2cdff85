"""Random lakes: several tables in overlapping folders, strays of every kind and age, writers at work meanwhile."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from firnline.model.files import Tally
from firnline.model.locations import within
from firnline.ports.listings import ObjectClass
from firnline.testing.faults import Acting
from harness.crowds import Crowd

WORLDS = 400 if os.environ.get("FIRNLINE_FULL") else 25
FOLDERS = ("a", "a2", "b", "shared", "a/data/inner", "a/other/deep", "b/data/p=1")
NAMES = ("left.parquet", "left.orc", "left.avro", "left.puffin", "notes.txt", "_hidden.parquet", "p=2/left.parquet")
PLACES = ("data", "metadata", "backup", "data/_temporary")
AGES = (0.5, 0.99, 1.5, 4.0, 40.0)
KNOWN = {"data": ("parquet", "orc", "avro", "puffin"), "metadata": ("avro", "puffin")}


@dataclass(frozen=True)
class Stray:
    table: int
    place: str
    name: str
    days: float

    @property
    def is_garbage(self) -> bool:
        """Whether it must go: a writer might have left it there, and it is older than three days."""
        hidden = self.name.startswith("_") and self.place == "data"
        ending = self.name.rpartition(".")[2]
        return ending in KNOWN.get(self.place, ()) and not hidden and self.days > 3


@dataclass(frozen=True)
class Plot:
    """What a world is made of, and what is searched: a table by its number, or the whole lake."""

    folders: tuple[str, ...]
    histories: tuple[tuple[str, ...], ...]
    strays: tuple[Stray, ...]
    searched: int | None
    meanwhile: tuple[int, str]


def plots() -> st.SearchStrategy[Plot]:
    history = st.lists(st.sampled_from(["append", "overwrite", "staged", "branch", "forget"]), max_size=4).map(tuple)

    def of(folders: tuple[str, ...]) -> st.SearchStrategy[Plot]:
        which = st.integers(0, len(folders) - 1)
        stray = st.builds(Stray, which, st.sampled_from(PLACES), st.sampled_from(NAMES), st.sampled_from(AGES))
        return st.builds(
            Plot,
            st.just(folders),
            st.tuples(*[history for _ in folders]),
            st.lists(stray, max_size=6, unique_by=lambda each: (each.table, each.place, each.name)).map(tuple),
            st.none() | which,
            st.tuples(st.integers(0, 12), st.sampled_from(["append", "overwrite", "table"])),
        )

    return st.lists(st.sampled_from(FOLDERS), min_size=1, max_size=4).map(tuple).flatmap(of)


@settings(max_examples=WORLDS, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(plot=plots())
def test_no_needed_file_goes_and_every_old_orphan_does(plot: Plot) -> None:
    with tempfile.TemporaryDirectory() as folder:
        crowd = Crowd.make(Path(folder))
        live(crowd, plot)
        strays = {crowd.stray(f"{plot.folders[s.table]}/{s.place}/{s.name}", s.days): s for s in plot.strays}
        number, what = plot.meanwhile
        process = crowd.process(Acting(number, lambda: meanwhile(crowd, what)))
        named = crowd.lake if plot.searched is None else crowd.name(f"t{plot.searched}")
        plan, _ = process.orphans(named, grace="0s", consent=lambda plan: True, blast_radius=1.0)
        note(str(plan.to_json()["classes"]))
        crowd.check()
        assert sum(plan.classes.values(), Tally()) == plan.listed
        must_go = {path for path, stray in strays.items() if stray.is_garbage and in_scope(plot, path, crowd)}
        assert strays.keys() - crowd.files() == must_go
        assert plan.classes[ObjectClass.VICTIM].files >= len(must_go)


def in_scope(plot: Plot, path: str, crowd: Crowd) -> bool:
    """Tells whether a stray is the searched table's to judge: in its writers' folders and not in another's inside."""
    if plot.searched is None:
        return True
    mine = f"{crowd.lake}/{plot.folders[plot.searched]}"
    others = {f"{crowd.lake}/{each}" for each in plot.folders} - {mine}
    nested = [each for each in others if within(mine, each) and within(each, path)]
    return any(within(f"{mine}/{place}", path) for place in ("data", "metadata")) and not nested


def live(crowd: Crowd, plot: Plot) -> None:
    for number, (folder, history) in enumerate(zip(plot.folders, plot.histories, strict=True)):
        writer = crowd.table(f"t{number}", inside=folder, commits=1)
        for act in history:
            step(crowd, writer, act)
    crowd.age(crowd.folder / "lake")


def step(crowd: Crowd, writer: Any, act: str) -> None:
    head = writer.document()["current-snapshot-id"]
    match act:
        case "append":
            writer.append(2)
        case "overwrite":
            writer.overwrite(crowd.ledger.truths[head].data[:1], 1)
        case "staged":
            writer.append(1, on=None)
        case "branch":
            writer.set_ref("audit", head, "branch")
            writer.append(1, on="audit")
        case "forget":
            refs = {each["snapshot-id"] for each in writer.document()["refs"].values()}
            writer.change(lambda document: keep_only(document, refs))


def keep_only(document: dict[str, Any], wanted: set[int]) -> None:
    """Takes snapshots out as a tool would that was killed before it removed their files."""
    kept = [each for each in document["snapshots"] if each["snapshot-id"] in wanted]
    document.update({"snapshots": kept, "snapshot-log": []})


def meanwhile(crowd: Crowd, what: str) -> None:
    writer = crowd.writers["t0"]
    match what:
        case "append" | "overwrite":
            step(crowd, writer, what)
        case "table":
            crowd.table("late", inside="shared/data/late", commits=1)


@pytest.mark.full
def test_the_worlds_reach_what_they_are_for() -> None:
    """The strategy is only worth something if it makes garbage, young files and neighbours often enough."""
    from hypothesis import Phase, find

    any_will_do = settings(max_examples=2_000, phases=[Phase.generate])
    assert find(plots(), lambda plot: sum(each.is_garbage for each in plot.strays) >= 2, settings=any_will_do)
    assert find(
        plots(),
        lambda plot: plot.searched is not None and "a" in plot.folders and "a/data/inner" in plot.folders,
        settings=any_will_do,
    )
    with pytest.raises(AssertionError):
        assert Stray(0, "data", "notes.txt", 40).is_garbage
