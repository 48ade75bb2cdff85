from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firnline.model.graph import Graph
from firnline.model.snapshots import Snapshot


def chain(length: int) -> list[Snapshot]:
    return [Snapshot(str(n), str(n - 1) if n else None, n) for n in range(length)]


def without(graph: Graph, gone: set[str]) -> Graph:
    return Graph((s for s in graph if s.id not in gone), graph.bridges_without(gone))


@given(
    st.integers(2, 30).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.sets(st.integers(0, n - 2)), max_size=4)))
)
def test_however_often_snapshots_go_the_rest_is_one_history(case: tuple[int, list[set[int]]]) -> None:
    length, rounds = case
    graph, left = Graph(chain(length)), set(range(length))
    for gone in rounds:
        left -= gone
        graph = without(graph, {str(n) for n in gone})
        assert [s.id for s in graph.history(str(length - 1))] == [str(n) for n in sorted(left, reverse=True)]


def test_what_nobody_removed_needs_no_bridge() -> None:
    assert Graph(chain(5)).bridges_without(frozenset()) == {}


def test_iceberg_itself_still_ends_at_the_hole() -> None:
    graph = without(Graph(chain(5)), {"2"})
    assert [s.id for s in graph.lineage("4")] == ["4", "3"]
    assert [s.id for s in graph.history("4")] == ["4", "3", "1", "0"]


def test_a_tool_that_removes_a_bridged_snapshot_or_clears_its_parent_does_not_cut_the_history() -> None:
    graph = without(Graph(chain(6)), {"3"})
    assert graph.bridges == {"4": "2"}
    bridges = {**graph.bridges, **graph.bridges_without({"2"})}
    cleared = [Snapshot(s.id, None if s.id == "4" else s.parent, s.timestamp_ms) for s in graph if s.id != "2"]
    assert [s.id for s in Graph(cleared, bridges).history("5")] == ["5", "4", "1", "0"]


def test_a_loop_of_bridges_ends() -> None:
    graph = Graph([Snapshot("a", "x", 1)], {"a": "b", "b": "c", "c": "b"})
    assert [s.id for s in graph.history("a")] == ["a"]
