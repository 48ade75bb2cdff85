"""The identity of a whole column of paths is the identity of each of them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from firnline.formats.columns import first_dotted, identities
from firnline.model.locations import identity, is_dotted

STEMS = [
    "",
    "/",
    "//",
    "file:",
    "file:/",
    "file:///",
    "file://localhost/",
    "s3://Bucket/",
    "s3a://bucket/",
    "S3N://b//",
]
STEMS += ["hdfs://nn:8020/", "hdfs:///", "gs://b/", "memory://m/", "abfss://c@a/", "odd:"]
PARTS = st.sampled_from(["a", "b c", "a%20b", "x//y", "/lead", "day=1/z", "é", "s3://inside/", "", "end/"])
DOTTED_PARTS = st.sampled_from([".", "..", "a/../b", "./a", ".a", "a..", "...", "..\n", "b/.", "x:../y"])
SPELLED_ALIKE = st.builds(
    lambda stem, rests: [stem + rest for rest in rests], st.sampled_from(STEMS), st.lists(PARTS, min_size=1)
)
MIXED = st.lists(st.builds(str.__add__, st.sampled_from(STEMS), PARTS))


@settings(deadline=None)
@given(st.one_of(SPELLED_ALIKE, MIXED))
@example(["s3a://b/x", "s3a://b//x"])
@example(["file:///a", "file:////a"])
@example(["s3://b/x", "s3://b/x://y"])
@example([])
def test_a_column_has_the_identities_of_its_paths(paths: list[str]) -> None:
    assert identities(pa.array(paths, pa.string())).to_pylist() == [identity(path) for path in paths]


@settings(deadline=None)
@given(st.one_of(SPELLED_ALIKE, MIXED))
@example(["/t/a", "/t/b", "/t//x", "/t/../x"])
def test_it_has_them_also_with_offsets_of_64_bits(paths: list[str]) -> None:
    """Spark hands out such strings where `spark.sql.execution.arrow.useLargeVarTypes` is set."""
    column = pa.array(["other://x/y", *paths], pa.large_string()).slice(1)
    assert identities(column).to_pylist() == [identity(path) for path in paths]
    assert first_dotted(column) == next((path for path in paths if is_dotted(path)), None)


@settings(deadline=None)
@given(SPELLED_ALIKE)
def test_a_slice_of_a_column_has_them_too(paths: list[str]) -> None:
    column = pa.array(["other://x/y", *paths], pa.string()).slice(1)
    assert identities(column).to_pylist() == [identity(path) for path in paths]


@settings(deadline=None)
@given(st.lists(st.builds(str.__add__, st.sampled_from(STEMS), st.one_of(PARTS, DOTTED_PARTS))))
def test_a_column_finds_the_first_path_with_a_dotted_segment(paths: list[str]) -> None:
    expected = next((path for path in paths if is_dotted(path)), None)
    assert first_dotted(pa.array(paths, pa.string())) == expected
