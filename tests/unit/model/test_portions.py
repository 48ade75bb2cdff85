"""Units are opened in portions: in their order, each once, and never more than memory is meant for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firnline.model.files import File, FileKind
from firnline.model.portions import MOST_BYTES, MOST_UNITS, portions

SIZES = st.one_of(st.none(), st.integers(0, 2 * MOST_BYTES), st.integers(0, 4096))


@given(st.lists(SIZES, max_size=300))
def test_each_unit_once_in_order_and_within_bounds(sizes: list[int | None]) -> None:
    units = [File(FileKind.MANIFEST, str(number), size, True) for number, size in enumerate(sizes)]
    found = list(portions(units))
    assert [unit for portion in found for unit in portion] == units
    for portion in found:
        assert 1 <= len(portion) <= MOST_UNITS
        assert len(portion) == 1 or sum(unit.size or 0 for unit in portion) <= MOST_BYTES


def test_small_units_share_a_portion() -> None:
    units = [File(FileKind.MANIFEST, str(number), 1_000, True) for number in range(MOST_UNITS + 1)]
    assert list(map(len, portions(units))) == [MOST_UNITS, 1]
