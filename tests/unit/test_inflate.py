"""A few bytes that stand for very many are refused by the name of their object, and never inflated into memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest

from firnline.errors import UnreadableMetadata
from firnline.formats.iceberg.document import parse_document
from firnline.inflate import BELIEVED, RATIO, gunzipped

LARGEST = 4 << 30


def burst(size: int) -> bytes:
    """Returns a gzip stream of so many spaces, made piece by piece."""
    return b"".join(_pieces(size))


def _pieces(size: int) -> Iterator[bytes]:
    deflate = zlib.compressobj(9, wbits=31)
    for _ in range(size >> 20):
        yield deflate.compress(b" " * (1 << 20))
    yield deflate.flush()


def test_a_burst_is_refused_without_being_held() -> None:
    data = burst(2 * BELIEVED)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"inflate to more than {BELIEVED:,}"):
            gunzipped(data, LARGEST)
        assert tracemalloc.get_traced_memory()[1] < BELIEVED // 8
    finally:
        tracemalloc.stop()


def test_what_is_held_by_a_small_object_anyway_is_believed() -> None:
    assert gunzipped(burst(BELIEVED), LARGEST) == b" " * BELIEVED


@pytest.mark.full
@pytest.mark.slow
def test_a_large_object_may_hold_more() -> None:
    text = json.dumps({"snapshots": [{"name": f"{number * 7919:x}", "zeros": "0" * 450} for number in range(150_000)]})
    data = gzip.compress(text.encode())
    assert len(text) > BELIEVED
    assert RATIO * len(data) > len(text)
    assert gunzipped(data, LARGEST) == text.encode()


@pytest.mark.parametrize("keep", [1, 10, 100, -1])
def test_a_stream_that_was_cut_is_refused(keep: int) -> None:
    data = gzip.compress(json.dumps(list(range(10_000))).encode())[:keep]
    with pytest.raises((ValueError, zlib.error)):
        gunzipped(data, LARGEST)


def test_a_document_that_bursts_is_told_by_its_name() -> None:
    with pytest.raises(UnreadableMetadata, match=r"s3://lake/t/metadata/v1\.gz\.metadata\.json: its .* inflate"):
        parse_document(burst(BELIEVED + (1 << 20)), "s3://lake/t/metadata/v1.gz.metadata.json")
