"""Many files in one call: what each says alone, in their order; one that is damaged spoils the call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.formats.avro import CorruptAvro, decode, decode_many
from harness.lanes import by_lane

from .strategies import Sample, samples
from .test_damage import FILES, WANTED, damaged

COUNT = by_lane(30, 30, 3_000)
WAYS = ["python", "compiled"]


def alone(files: list[bytes], wanted: dict[str, Any], way: Any) -> list[pa.RecordBatch] | None:
    """What each file holds; None where one of them is damaged."""
    try:
        return [decode(data, wanted, way=way).batch for data in files]
    except CorruptAvro:
        return None


def by_file(files: int, found: tuple[pa.RecordBatch, Any]) -> list[pa.RecordBatch]:
    batch, of = found
    assert len(of) == batch.num_rows
    return [batch.filter(pa.array(of == number)) for number in range(files)]


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=COUNT, deadline=None)
@given(names=st.lists(st.sampled_from(sorted(FILES)), min_size=1, max_size=5), data=st.data())
def test_damage_anywhere_spoils_all_and_no_damage_nothing(way: Any, names: Any, data: st.DataObject) -> None:
    files = [FILES[name] for name in names]
    for place in data.draw(st.sets(st.integers(0, len(files) - 1), max_size=2)):
        files[place] = damaged(data.draw, files[place])
    expected = alone(files, WANTED, way)
    if expected is None:
        with pytest.raises(CorruptAvro):
            decode_many(files, WANTED, way=way)
    else:
        assert by_file(len(files), decode_many(files, WANTED, way=way)) == expected


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=COUNT, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mixed=st.lists(samples(), min_size=1, max_size=4), data=st.data())
def test_files_of_several_schemas_and_codecs(way: Any, mixed: list[Sample], data: st.DataObject) -> None:
    order = data.draw(st.permutations([*mixed, mixed[0]]))
    wanted: dict[str, Any] = {"absent.leaf": pa.string()}
    assert by_file(len(order), decode_many([each.data for each in order], wanted, way=way)) == [
        decode(each.data, wanted, way=way).batch for each in order
    ]


def test_together_they_may_hold_no_more_than_one_may() -> None:
    data = next(iter(FILES.values()))
    whole = decode(data, WANTED)
    with pytest.raises(CorruptAvro, match="more than"):
        decode_many([data] * 40, WANTED, max_bytes=len(data))
    assert np.array_equal(np.bincount(decode_many([data] * 3, WANTED)[1]), [whole.rows] * 3)
