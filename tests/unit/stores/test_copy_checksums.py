"""Checksums of copies: S3's own tags, whatever pieces the bytes come in."""

from __future__ import annotations

from hashlib import md5, sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import PermanentStoreError
from firnline.stores.copies.checksums import (
    MOST_PARTS,
    PART_BYTES,
    form_of,
    in_parts,
    is_tag,
    md5_tag,
    part_of,
    part_size,
    summed,
    summing,
)


def tag_of(data: bytes, part: int) -> str:
    """The tag of a multipart upload, as AWS's own users compute it."""
    sums = [md5(data[start : start + part]).digest() for start in range(0, len(data), part)]
    return f'"{md5(b"".join(sums)).hexdigest()}-{len(sums)}"'


@given(st.binary(min_size=1, max_size=64), st.integers(1, 20), st.lists(st.integers(1, 9), max_size=64))
def test_parts_are_cut_at_their_own_borders(data: bytes, part: int, cuts: list[int]) -> None:
    pieces, rest = [], data
    for cut in [*cuts, len(data)]:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    checksum = summed(pieces, in_parts(part))
    assert is_tag(checksum, tag_of(data, part))
    assert (part_of(checksum), form_of(checksum)) == (part, f"md5/{part}")
    assert summed(pieces, "md5") == f"md5:{md5(data).hexdigest()}"
    assert summed(pieces, "sha256") == f"sha256:{sha256(data).hexdigest()}"


@given(st.binary(min_size=1, max_size=64), st.integers(0, 63), st.integers(0, 7), st.integers(1, 20))
def test_one_bit_is_another_checksum(data: bytes, at: int, bit: int, part: int) -> None:
    changed = bytearray(data)
    changed[at % len(data)] ^= 1 << bit
    for form in ("md5", "sha256", in_parts(part)):
        assert summed([data], form) != summed([bytes(changed)], form)


@given(st.integers(0, 5 << 40))
def test_no_object_has_too_many_parts(size: int) -> None:
    part = part_size(size)
    assert part >= PART_BYTES
    assert -(-size // part) <= MOST_PARTS


@pytest.mark.parametrize(
    "etag", [None, "", '"x"', '"0"', f'"{"g" * 32}"', f'"{"0" * 32}-0"', f'"{"0" * 32}-1-2"', "1-2-3"]
)
def test_what_does_not_look_like_an_md5_is_none(etag: str | None) -> None:
    assert md5_tag(etag) is None
    assert not is_tag(f"md5:{(etag or '').strip(chr(34))}", etag)


def test_a_sha256_is_never_a_tag() -> None:
    plain = "0" * 32
    assert is_tag(f"md5:{plain}", f'"{plain}"')
    assert not is_tag(f"sha256:{plain}", f'"{plain}"')
    assert not is_tag(f"md5:{plain}", f'"{plain}-1"')


@pytest.mark.parametrize("form", ["", "sha1", "md5/", "md5/0", "md5/-1", "sha256/8", "MD5"])
def test_a_form_of_a_later_version_is_refused(form: str) -> None:
    with pytest.raises(PermanentStoreError, match="no checksum that this version knows"):
        summing(form)
