"""Any sequence of expiries, undos and ageing leaves what a simple model says, in lists cut at any length."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.history.listing import Entry, bytes_of, in_order, parse_list, read_list, text_of
from firnline.history.names import HistoryPointer
from firnline.history.opening import read_index, read_segment
from firnline.history.revise import Wish, laid_out, revise

FOLDER = "mem:///t/_firnline/history/u"


class Objects:
    """A store of objects that are written once."""

    def __init__(self) -> None:
        self.all: dict[str, bytes] = {}

    def get(self, key: str) -> bytes:
        return self.all[key]

    def put(self, objects: dict[str, bytes]) -> None:
        for key, data in objects.items():
            assert self.all.get(key, data) == data
            self.all[key] = data


def entry(number: int) -> Entry:
    return {
        "snapshot-id": number,
        "timestamp-ms": (number * 37) % 100,
        "summary": {"operation": "append"},
        "x": "é" * 9,
    }


numbers = st.sets(st.integers(0, 60), max_size=12)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("expire"), numbers, st.integers(-1, 99)),
        st.tuples(st.just("undo"), numbers, st.just(0)),
    ),
    max_size=12,
)


def stored(store: Objects, pointer: HistoryPointer | None) -> list[Any]:
    if pointer is None:
        return []
    older = () if pointer.index is None else read_index(store, pointer.index)
    return [*(each for segment in older for each in read_segment(store, segment)), *read_list(store, pointer.path)]


@settings(deadline=None)
@given(steps, st.sampled_from([60, 200, 700, 1 << 20]))
def test_a_history_is_what_the_model_says(life: list[tuple[str, set[int], int]], longest: int) -> None:
    store, pointer, model = Objects(), None, dict[int, Entry]()
    for verb, wanted, bound in life:
        if verb == "expire":
            wish = Wish([entry(each) for each in sorted(wanted)], bound_ms=bound)
            model |= {each: entry(each) for each in wanted}
            model = {each: found for each, found in model.items() if found["timestamp-ms"] > bound}
        else:
            wish = Wish(gone={str(each): entry(each)["timestamp-ms"] for each in wanted})
            model = {each: found for each, found in model.items() if each not in wanted}
        segments = () if pointer is None or pointer.index is None else read_index(store, pointer.index)
        newest = [] if pointer is None else read_list(store, pointer.path)
        before = stored(store, pointer)
        revision = revise(newest, segments, lambda segment: read_segment(store, segment), wish)
        assert revision.changed or in_order(before) == in_order(model.values())
        pointer, objects = laid_out(revision, FOLDER, longest)
        store.put(objects)
        assert in_order(stored(store, pointer)) == in_order(model.values())
        assert len(stored(store, pointer)) == len(model)
        _check_lists(store, pointer, longest)


def _check_lists(store: Objects, pointer: HistoryPointer, longest: int) -> None:
    """Raises where the pointer's list is no plain list, or longer than it may be: one entry may be, alone."""
    simple = json.loads(store.get(pointer.path))
    size = sum(len(json.dumps(each, separators=(",", ":"), ensure_ascii=False)) for each in simple)
    assert size <= longest or len(simple) == 1


def test_a_summary_that_is_no_text_is_remembered_all_the_same() -> None:
    """JSON can say half of a pair of surrogates, and a writer's summary may; as UTF-8 nobody can write it."""
    strange = json.loads('{"snapshot-id": 7, "timestamp-ms": 5, "summary": {"app": "\\ud83d", "owner": "é"}}')
    assert parse_list(bytes_of([text_of(strange), text_of(entry(8))]), "x") == [strange, entry(8)]
