"""One identity per object: every spelling of it is equal, and no two objects are."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from firnline.model.locations import _home, bare_path, identity, is_dotted, join, parse_location, spellings, within


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3a://bucket/a/b", "s3://bucket/a/b"),
        ("s3n://bucket/a/b", "s3://bucket/a/b"),
        ("S3://Bucket/a/b", "s3://bucket/a/b"),
        ("s3://bucket//a///b", "s3://bucket/a/b"),
        ("gcs://bucket/a", "gs://bucket/a"),
        ("abfss://c@account.dfs.core.windows.net/a", "abfs://c@account.dfs.core.windows.net/a"),
        ("/a/b", "file:///a/b"),
        ("file:/a/b", "file:///a/b"),
        ("file://localhost/a/b", "file:///a/b"),
        ("/a//b", "/a/b"),
    ],
)
def test_spellings_of_one_object(one: str, other: str) -> None:
    assert identity(one) == identity(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://bucket/a", "s3://bucket2/a"),
        ("s3://bucket/a", "gs://bucket/a"),
        ("s3://bucket/A", "s3://bucket/a"),
        ("s3://bucket/a%20b", "s3://bucket/a b"),
        ("hdfs://one:8020/a", "hdfs://two:8020/a"),
        ("/a/b", "/a/b/"),
        ("/a/./b", "/a/b"),
    ],
)
def test_different_objects(one: str, other: str) -> None:
    assert identity(one) != identity(other)


@given(st.text(min_size=1))
def test_an_identity_is_its_own_identity(path: str) -> None:
    found = identity("/" + path)
    assert identity(found) == found


@pytest.mark.parametrize(
    ("root", "text", "inside"),
    [
        ("s3://b/t", "s3a://b/t/x", True),
        ("s3://b/t/", "s3://b//t/x", True),
        ("s3://b/t", "s3://b/t2/x", False),
        ("s3://b/t", "s3://b/t", False),
        ("s3://b", "s3://b/x", True),
        ("s3://b", "s3://b2/x", False),
        ("/", "/x", True),
        ("/t", "file:/t/x", True),
    ],
)
def test_within_a_folder(root: str, text: str, inside: bool) -> None:
    assert within(root, text) is inside


def test_parts() -> None:
    assert parse_location("s3a://Bucket/a//b") == ("s3", "bucket", "/a/b")
    assert parse_location("a/b") == ("file", "", "/a/b")


def test_join_puts_one_slash_between() -> None:
    assert join("s3://b/t/", "/metadata/", "x.json") == "s3://b/t/metadata/x.json"


@pytest.mark.parametrize(
    "path", ["../x", "./x", "a/..", "a/.", "s3://b/t/../o/x", "s3://b/./x", "file:../x", "/..", ".", "s3://b/..\n/../x"]
)
def test_a_segment_of_one_or_two_dots_is_seen(path: str) -> None:
    assert is_dotted(path)


@pytest.mark.parametrize(
    "path", ["s3://b/.hidden/x", "s3://b/a..b/x", "s3://b/.../x", "/a/x.", "/a/..x", "/a/..\n", ""]
)
def test_a_name_with_dots_in_it_is_no_such_segment(path: str) -> None:
    assert not is_dotted(path)


@given(st.text(st.sampled_from("/:%2Fa.é̀ S3+\n"), max_size=14) | st.text(max_size=8))
@example("s3://b/x")
@example("S3a://Bucket//a/x")
@example("file:x")
@example("file://localhost/x")
@example("/a%41/b")
def test_what_is_quick_says_what_parsing_says(text: str) -> None:
    """Two ways to say the same, of which one is quick: a difference would let a needed file go."""
    assert identity(text) == str(parse_location(text))
    assert spellings(text) == (identity(text), bare_path(text))


_PIECES = ["/", "//", ":", "s3", "S3A:", "file:", "localhost", "a", "..", "%2F", "\n", "\0", "é", "\ud800", "İ"]


@given(st.lists(st.sampled_from(_PIECES), max_size=10))
def test_what_is_quick_says_what_parsing_says_of_every_sort_of_name(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert identity(text) == str(parse_location(text))
    assert spellings(text) == (identity(text), bare_path(text))


def test_folders_with_endless_names_take_no_memory_for_good() -> None:
    known = _home.cache_info().currsize
    for number in range(3):
        text = f"s3a://b/{number}/{'a//' * 4_000}x.parquet"
        assert spellings(text) == (identity(text), bare_path(text)) == (str(parse_location(text)), bare_path(text))
    assert _home.cache_info().currsize == known
