"""Where files lie in a tier."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import UnsupportedFormat
from firnline.tiers.places import TierPlaces

COLD = TierPlaces("s3://cold/keep/")


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


HEADS = ["s3://", "s3a://", "s3:/", "s3:///", "s3:", "s4:", "file:/", "file:///", "/", "//", ""]
NAMES = st.text(st.sampled_from("-/0lz\U0001f9ca"), min_size=1, max_size=8)


def shortened(upper: str, cut: int) -> str:
    """Returns a bound from above of the length that Iceberg cuts it to: its last character is the next one."""
    return upper if cut >= len(upper) else upper[: cut - 1] + chr(ord(upper[cut - 1]) + 1)


@given(st.lists(st.builds(str.__add__, st.sampled_from(HEADS), NAMES), min_size=3), st.integers(1, 12))
def test_bounds_hold_all_that_they_held_or_are_refused(paths: list[str], cut: int) -> None:
    """Else a reader would take deletes for those of other files, and show deleted rows again."""
    lower, *between, upper = sorted(paths)
    try:
        low, high = COLD.bounds(lower[:cut], shortened(upper, cut))
    except UnsupportedFormat:
        return
    assert all(low <= COLD.place(path) <= high for path in (lower, *between, upper))


@given(
    st.sampled_from(["s3://", "abfss://", "file:/", "file:///", "/"]),
    st.lists(st.text(st.characters(exclude_characters="./", min_codepoint=ord("0")), min_size=1), min_size=3),
    st.integers(1, 99),
)
def test_bounds_of_one_scheme_are_placed(head: str, names: list[str], cut: int) -> None:
    lower, *between, upper = sorted(f"{head}{name}" for name in names)
    low, high = COLD.bounds(lower[: len(head) + cut], upper)
    assert all(low <= COLD.place(path) <= high for path in between)


def test_bounds_of_two_schemes_are_refused() -> None:
    with pytest.raises(UnsupportedFormat, match="several schemes"):
        COLD.bounds("file:///lake/a", "s3://lake/b")
