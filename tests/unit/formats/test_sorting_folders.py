"""Many folders are looked up as few are tried: by both ways the same names lie in them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from firnline.formats import sorting
from firnline.formats.sorting import Sorting
from firnline.model.locations import stem_of, stems_around

parts = st.sampled_from(["a", "ab", "b", "data", "a b", "é"])
folders = st.lists(parts, min_size=0, max_size=4).map(lambda each: "/".join(["s3://bucket", *each]))


@given(st.lists(folders, min_size=sorting._FEW + 1, max_size=20), st.lists(st.tuples(folders, parts), max_size=30))
def test_many_folders_hold_what_each_of_them_holds(several: list[str], named: list[tuple[str, str]]) -> None:
    names = pa.array([f"{folder}/{name}" for folder, name in named], pa.string())
    stems = sorted(map(stem_of, several))
    found = Sorting(0, ())._under_any(names, tuple(several)).to_pylist()
    assert found == [any(name.startswith(stem) for stem in stems) for name in names.to_pylist()]


def test_the_stems_around_a_folder_end_with_its_bucket() -> None:
    assert list(stems_around("s3://b/a/c/")) == ["s3://b/a/c/", "s3://b/a/", "s3://b/", "s3://"]
    assert list(stems_around("file:///a/")) == ["file:///a/", "file:///"]
