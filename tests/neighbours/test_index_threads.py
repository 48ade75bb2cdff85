"""One index for tables that are worked on side by side: what one thread asked is answered by what it read itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Thread, current_thread
from typing import Any

import pytest

from firnline.app.places import now_ms
from firnline.lake import Lake
from firnline.ops.neighbours import index as module
from firnline.ops.neighbours.index import Index
from tests.neighbours.lakes import RealLake


class Meanwhile:
    """Another thread's look at the lake. It has read all tables before this one walks them, and notes what it read
    after the walk.
    """

    def __init__(self, lake: Lake, table: str) -> None:
        self.has_read, self.may_note = Event(), Event()
        self.thread = Thread(target=self.look, args=(lake, table))

    def look(self, lake: Lake, table: str) -> None:
        work = lake.places.table_context(table)
        work.index.placed(lambda afresh: work.registered(()), lambda each: each.name == work.source.name)

    def paused(self, read_all: Callable[..., Any]) -> Callable[..., Any]:
        def read(*said: Any) -> Any:
            found = read_all(*said)
            if current_thread() is self.thread:
                self.has_read.set()
                assert self.may_note.wait(20)
            return found

        return read

    def around(self, walk: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def walked(*said: Any) -> Iterator[Any]:
            self.thread.start()
            assert self.has_read.wait(20)
            yield from walk(*said)
            self.may_note.set()
            self.thread.join()

        return walked


def doomed(lake: Lake) -> int:
    return lake.plan("lake.db.a", older_than=now_ms(), retain_last=1, blast_radius=1.0).plan.victims.all.files


@pytest.mark.sampled(1)
@pytest.mark.parametrize("other", ["lake.db.b", "lake.db.clone"])
def test_a_walk_is_not_forgotten_since_another_thread_notes_what_it_read_before(
    lake: RealLake, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clone needs every file of its original. Another thread had read it before it was walked."""
    for name in "ab":
        lake.create(name)
        lake.append(name, 1)
        lake.overwrite(name, 2)
    assert doomed(lake.firnline()) > 0
    lake.clone("a", "clone")
    firnline = lake.firnline()
    meanwhile = Meanwhile(firnline, other)
    monkeypatch.setattr(module, "read_all", meanwhile.paused(module.read_all))
    monkeypatch.setattr(Index, "_walk_all", meanwhile.around(Index._walk_all))
    assert doomed(firnline) == 0
