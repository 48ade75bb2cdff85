"""Changelogs that Flink packs into one file: each part is named by the file that is there."""

from __future__ import annotations

import pyarrow as pa
import pytest

from firnline.formats.paimon.walking.layout import is_packed, unpacked

NAME = "compacted-changelog-8e049c65-5ce4-4ce7-b1b0-78ce694ab351"


@pytest.mark.parametrize(
    ("key", "whole"),
    [
        (f"/t/p=a/bucket-0/{NAME}$0-39253.cc-parquet", f"/t/p=a/bucket-0/{NAME}$0-39253.cc-parquet"),
        (f"/t/p=a/bucket-1/{NAME}$0-39253-39253-35699.cc-parquet", f"/t/p=a/bucket-0/{NAME}$0-39253.cc-parquet"),
        (f"s3://b/t/bucket-12/{NAME}$7-1-2-3.cc-orc", f"s3://b/t/bucket-7/{NAME}$7-1.cc-orc"),
        ("/t/bucket-1/data-1.parquet", "/t/bucket-1/data-1.parquet"),
        ("/t/bucket-1/changelog-a$0-1-2-3.parquet", "/t/bucket-1/changelog-a$0-1-2-3.parquet"),
    ],
)
def test_a_part_is_named_by_its_file(key: str, whole: str) -> None:
    assert unpacked(pa.array([key, f"/t/bucket-0/{NAME}$0-1.cc-parquet"])).to_pylist()[0] == whole


def test_names() -> None:
    assert is_packed(pa.array([f"{NAME}$0-1.cc-parquet", "changelog-1.parquet"])).to_pylist() == [True, False]
