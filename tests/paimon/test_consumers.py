"""Consumers that nobody has moved for longer than the table says: they hold nothing any more, and go."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firnline.testing.dated import date
from firnline.testing.faults import Fault, When
from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon

from .cutting import WHEN, cut_run, cut_undo
from .small import Copy, quick_folder, row

OPTIONS = {"bucket": "1", "consumer.expiration-time": "1 h"}


@pytest.fixture(scope="module")
def made(both: Paimon) -> Iterator[Path]:
    """A table of five snapshots; `old` has read nothing for two hours, `live` waits for the fifth."""
    folder = quick_folder()
    table = JavaTable(both.java, folder / "t")
    table.create(Shape("java", True, (), OPTIONS))
    for number in range(5):
        table.write(MAIN, [row(number, "row"), row(0, f"again {number}")])
        table.compact(MAIN, True)
    table.consumer(MAIN, "old", 2)
    table.consumer(MAIN, "live", 9)
    touch(folder / "t/consumer/consumer-old", hours=2)
    yield folder
    shutil.rmtree(folder)


def touch(path: Path, hours: float) -> None:
    then = time.time() - hours * 3600
    date(path, then * 1000)


def all_but_one(copy: Copy, fault: Fault | None = None, **options: Any) -> Any:
    return copy.expire(fault, retain_last=1, **options)


def test_a_consumer_that_stopped_holds_nothing_and_goes(copy: Copy) -> None:
    view = copy.process().plan(copy.table, retain_last=1, older_than="2100-01-01T00:00:00Z", blast_radius=1.0)
    plan = view.to_json()
    why = "consumer.expiration-time: not modified for longer than 1h"
    assert plan["beside"]["expire"] == [{"kind": "consumer", "name": "old", "why": why}]
    (kept,) = plan["beside"]["keep"]
    assert (kept["name"], kept["why"].partition(";")[0]) == ("live", "it reads from 9 on")
    assert f"consumer old  {why}" in str(view)
    assert "7" in plan["expire"]
    all_but_one(copy)
    assert layout.consumers(copy.folder / "t", MAIN) == {"live": 9}
    assert layout.snapshots(copy.folder / "t", MAIN) == [9, 10]
    assert not copy.missing()


def test_one_that_moved_meanwhile_stays_and_holds(copy: Copy) -> None:
    """It reads on between the plan and the commit: the fresh decision goes by what it says then."""
    path = copy.folder / "t/consumer/consumer-old"
    copy.process().expire(
        copy.table, retain_last=1, older_than="2100-01-01T00:00:00Z", grace="0s", sole_writer=True, blast_radius=1.0,
        confirm=lambda plan: touch(path, hours=0),
    )  # fmt: skip
    assert layout.consumers(copy.folder / "t", MAIN) == {"live": 9, "old": 2}
    assert layout.snapshots(copy.folder / "t", MAIN)[0] == 2
    assert not copy.missing()


def test_it_goes_alone_where_nothing_else_does_and_comes_back(copy: Copy) -> None:
    before = copy.picture()
    ended = copy.process().expire(copy.table, grace="1h", sole_writer=True)
    assert ended.expired == ()
    assert before.keys() - copy.picture().keys() == {"/consumer/consumer-old"}
    copy.process().undo(str(ended.run.id))
    assert copy.picture() == before
    assert copy.process().plan(copy.table).to_json()["beside"]["expire"] == [], "its time starts anew"


def test_without_the_option_it_counts_however_old(both: Paimon, copy: Copy) -> None:
    touch(copy.folder / "t/consumer/consumer-old", hours=10_000)
    JavaTable(both.java, copy.folder / "t").set_option("consumer.expiration-time", "500 d")
    plan = copy.process().plan(copy.table, retain_last=1, older_than="2100-01-01T00:00:00Z").to_json()
    assert plan["beside"]["expire"] == []
    assert plan["expire"] == ["1"]


def test_the_operators_limit_ends_it_where_the_table_sets_none(both: Paimon, copy: Copy) -> None:
    JavaTable(both.java, copy.folder / "t").set_option("consumer.expiration-time", "500 d")
    asked: dict[str, Any] = {"retain_last": 1, "older_than": "2100-01-01T00:00:00Z", "blast_radius": 1.0}
    free = copy.process().plan(copy.table, **asked).to_json()
    limited = copy.process().plan(copy.table, keep={"readers-max-age": "0s"}, **asked).to_json()
    assert not any("readers-max-age" in note for note in free["notes"])
    (told,) = [note for note in limited["notes"] if "consumer old" in note]
    assert "longer than its limit of 0s (readers-max-age): it no longer keeps" in told
    assert set(free["expire"]) < set(limited["expire"])


@pytest.mark.full
@pytest.mark.parametrize("when", WHEN)
def test_an_expiry_is_cut_at_every_write(made: Path, when: When) -> None:
    effects = cut_run(made, all_but_one, when)
    assert any("/consumer/consumer-old" in key for _, key in effects)


@pytest.mark.full
def test_an_undo_is_cut_at_every_write(made: Path) -> None:
    cut_undo(made, lambda copy: str(all_but_one(copy, grace="1h").run.id))


@pytest.mark.parametrize("seed", range(4))
def test_the_same_consumers_go_as_by_paimons_own_expiry(both: Paimon, copy: Copy, seed: int) -> None:
    rng, table = random.Random(seed), JavaTable(both.java, copy.folder / "t")
    for number in range(6):
        table.consumer(MAIN, f"c{number}", 9)
        touch(copy.folder / f"t/consumer/consumer-c{number}", hours=rng.choice([0, 0.5, 0.98, 1.02, 3]))
    plan = copy.process().plan(copy.table).to_json()
    ours = {each["name"] for each in plan["beside"]["expire"]}
    before = set(layout.consumers(table.folder, MAIN))
    hour_ago = both.java.java("java.time.LocalDateTime").now().minusHours(1)
    table.open().consumerManager().expire(hour_ago)
    assert ours == before - set(layout.consumers(table.folder, MAIN))
