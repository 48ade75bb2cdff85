"""Where files lie in a tier."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import UnsupportedFormat
from firnline.tiers.mirror import Mirror

COLD = Mirror("s3://cold/keep/")


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("s3://lake/sales/x.parquet", "s3://cold/keep/lake/sales/x.parquet"),
        ("s3a://lake/sales/x.parquet", "s3://cold/keep/lake/sales/x.parquet"),
        ("file:///lake/day=1%2F2/x.parquet", "s3://cold/keep/lake/day=1%2F2/x.parquet"),
        ("file:/lake/x.parquet", "s3://cold/keep/lake/x.parquet"),
        ("/lake/x.parquet", "s3://cold/keep/lake/x.parquet"),
    ],
)
def test_a_file_has_the_path_of_its_source_below_the_root(path: str, place: str) -> None:
    assert COLD.place(path) == place


@pytest.mark.parametrize("path", ["/lake/../etc/x", "s3://lake/./x", "s3://../x"])
def test_no_path_leads_out_of_the_root(path: str) -> None:
    with pytest.raises(UnsupportedFormat, match="segment"):
        COLD.place(path)


@given(st.lists(st.text(st.characters(exclude_characters="."), min_size=1), min_size=3, max_size=3), st.integers(0, 99))
def test_bounds_hold_all_that_they_held(names: list[str], cut: int) -> None:
    lower, middle, upper = sorted(f"s3://lake/{name}" for name in names)
    low, high = COLD.bounds(lower[: len("s3://") + cut], upper)
    assert low <= COLD.place(middle) <= high


def test_bounds_of_two_schemes_are_refused() -> None:
    with pytest.raises(UnsupportedFormat, match="several schemes"):
        COLD.bounds("file:///lake/a", "s3://lake/b")
