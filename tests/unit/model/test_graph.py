"""The ancestry of snapshots, whole and damaged."""

from __future__ import annotations

import pytest

from firnline.model.graph import Graph
from firnline.model.holds import Hold
from firnline.model.snapshots import Snapshot


def graph(**parents: str | None) -> Graph:
    return Graph(Snapshot(name, parent, 0) for name, parent in parents.items())


def lineage(found: Graph, head: str) -> list[str]:
    return [snapshot.id for snapshot in found.lineage(head)]


@pytest.mark.parametrize(
    ("parents", "head", "expected"),
    [
        ({"a": None, "b": "a", "c": "b"}, "c", ["c", "b", "a"]),
        ({"a": None, "b": "a", "c": "a"}, "b", ["b", "a"]),
        ({"b": "missing", "c": "b"}, "c", ["c", "b"]),
        ({"a": None}, "nowhere", []),
        ({"a": "a"}, "a", ["a"]),
        ({"a": "c", "b": "a", "c": "b"}, "c", ["c", "b", "a"]),
        ({"a": "b", "b": "a", "c": "b"}, "c", ["c", "b", "a"]),
    ],
    ids=["chain", "fork", "gap", "unknown head", "own parent", "loop", "loop below"],
)
def test_lineage(parents: dict[str, str | None], head: str, expected: list[str]) -> None:
    assert lineage(graph(**parents), head) == expected


def test_a_graph_is_a_collection() -> None:
    found = graph(a=None, b="a")
    assert len(found) == 2
    assert "a" in found
    assert "x" not in found
    assert found["b"].parent == "a"
    assert [snapshot.id for snapshot in found] == list(found.by_id) == ["a", "b"]


@pytest.mark.parametrize(("until", "in_force"), [(None, True), (99, False), (100, True), (101, True)])
def test_a_hold_is_in_force_through_its_last_millisecond(until: int | None, in_force: bool) -> None:
    assert Hold("h", "ann", "audit", "1", until).in_force(100) is in_force
