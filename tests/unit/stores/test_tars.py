"""The form of a bundle: any members, whatever their names and sizes, are found where they were put."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import PermanentStoreError
from firnline.stores.copies.tars import BLOCK, END, cut, header, name_below, padding

_LETTERS = st.characters(codec="utf-8", exclude_characters="\0/")
_NAMES = st.lists(st.text(_LETTERS, min_size=1, max_size=120).filter(lambda part: part not in (".", "..")), min_size=1)
_FILES = st.dictionaries(_NAMES.map("/".join), st.binary(max_size=1_100), max_size=5)


def written(files: dict[str, bytes]) -> bytes:
    members = (header(name, len(data)) + data + padding(len(data)) for name, data in files.items())
    return b"".join((*members, END))


@given(_FILES)
def test_any_names_and_sizes_are_read_by_another(files: dict[str, bytes]) -> None:
    data = written(files)
    assert len(data) % BLOCK == 0
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        assert {each.name: data[each.offset_data : each.offset_data + each.size] for each in tar} == files
    assert written(files) == data


@given(st.lists(st.binary(max_size=40)), st.integers(1, 50))
def test_pieces_of_one_size_are_the_same_bytes(stream: list[bytes], size: int) -> None:
    pieces = list(cut(stream, size))
    assert b"".join(pieces) == b"".join(stream)
    assert all(len(each) == size for each in pieces[:-1])
    assert all(0 < len(each) <= size for each in pieces[-1:])


def test_a_member_beyond_what_one_block_can_say_is_told_by_its_header() -> None:
    size = (8 << 30) + 5
    info = tarfile.TarFile(fileobj=io.BytesIO(header("x", size) + END)).next()
    assert info is not None
    assert (info.name, info.size) == ("x", size)


@pytest.mark.parametrize(
    ("root", "place", "name"),
    [
        ("s3://b/tier", "s3://b/tier/ns/t/x", "ns/t/x"),
        ("s3://b/tier/", "s3://b/tier/a%20b", "a%20b"),
        ("/tier", "/tier//x", "./x"),
        ("file:///tier", "file:///tier/x y", "x y"),
    ],
)
def test_a_member_is_named_by_its_place_below_the_root(root: str, place: str, name: str) -> None:
    assert name_below(root, place) == name


@pytest.mark.parametrize("place", ["s3://b/tier2/x", "s3://b/tier", "s3://b/tier/", "/tier/x", ""])
def test_what_lies_elsewhere_has_no_name(place: str) -> None:
    with pytest.raises(PermanentStoreError):
        name_below("s3://b/tier", place)
