"""What stores may be asked for, as firnline.yaml says it: read exactly, and refused where it would protect nothing."""

from __future__ import annotations

import pytest

from firnline.errors import PolicyError
from firnline.policy.limits import LIMITS, SCHEMES, Limit, StoreLimits
from firnline.policy.parse import parse_policy
from firnline.stores import buckets


def limits(text: str) -> StoreLimits:
    return StoreLimits.of(parse_policy(text).stores)


def test_every_limit_is_read_with_its_line() -> None:
    said = "\n".join(["stores:", "  s3://lake:", *(f"    {name}: {at}" for at, name in enumerate(LIMITS, 10))])
    found = parse_policy(said).stores["s3://lake/"]
    assert {name: each.value for name, each in found.items()} == {name: at for at, name in enumerate(LIMITS, 10)}
    assert [each.source.line for each in found.values()] == list(range(3, 3 + len(LIMITS)))


@pytest.mark.parametrize("spelled", ["s3://b/t", "s3a://b/t/", "S3N://b//t", "s3://B/t"])
def test_a_place_is_the_same_in_every_spelling(spelled: str) -> None:
    said = limits(f"stores: {{'{spelled}': {{reads-at-once: 3}}}}")
    assert said.limit("reads-at-once", "s3://b/t/data/x") == Limit(3, "s3://b/t/")
    assert said.at_once("reads", "s3a://b/t") == 3
    assert said.limit("reads-at-once", "s3://b/t2/data/x") is None
    assert said.limit("deletes-at-once", "s3://b/t") is None


@pytest.mark.parametrize(
    "place", ["file:///", "/", "memory://x", "gs://b/deep/er", "abfss://c@a.dfs.core.windows.net", "az://c"]
)
def test_every_store_can_be_named(place: str) -> None:
    assert limits(f"stores: {{'{place}': {{deletes-per-second: 7}}}}").limit("deletes-per-second", f"{place}/t/x")


def test_the_schemes_are_those_that_stores_know() -> None:
    assert set(SCHEMES) == {"file", "memory", *buckets._REMOTE}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stores: {s3://b: {read-per-second: 3}}", "did you mean 'reads-per-second'"),
        ("stores: {s3://b: {batch: 3}}", "unknown key 'batch'"),
        ("stores: {s3://b: {reads-per-second: 0}}", "reads-per-second: '0' is not allowed"),
        ("stores: {s3://b: {reads-per-second: -1}}", "reads-per-second: '-1'"),
        ("stores: {s3://b: {reads-per-second: 1.5}}", "reads-per-second: '1.5'"),
        ("stores: {s3://b: {reads-per-second: 1000001}}", "reads-per-second: '1000001'"),
        ("stores: {s3://b: {deletes-per-second: nan}}", "deletes-per-second: 'nan'"),
        ("stores: {s3://b: {reads-at-once: 257}}", "reads-at-once: '257'"),
        ("stores: {s3://b: {delete-batch: 1001}}", "delete-batch: '1001'"),
        ("stores: {s3://b: {delete-batch: [1]}}", "delete-batch: "),
        ("stores: {s3://b: {delete-batch: {}}}", "delete-batch: a plain value is needed"),
        ("stores: {s3://b: 5}", "s3://b must be a mapping"),
        ("stores: 5", "stores must be a mapping"),
        ("stores: {s3://: {delete-batch: 5}}", "names no bucket"),
        ("stores: {s3:/b: {delete-batch: 5}}", "names no bucket"),
        ("stores: {lake: {delete-batch: 5}}", "'lake' is not a full location"),
        ("stores: {'/lake/../x': {delete-batch: 5}}", "is not a full location"),
        ("stores: {s4://b: {delete-batch: 5}}", "no store for s4:// is known"),
        ("stores: {s3://b: {}, s3a://b/: {}}", "written twice"),
        ("catalogs: {lake: {stores: {s3://b: {delete-batch: 5}}}}", "unknown key 'stores'"),
    ],
)
def test_a_slip_is_named_with_its_line(text: str, words: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parse_policy(text)
    assert words in refused.value.message
    assert refused.value.message.startswith("firnline.yaml:1")


def test_a_hint_tells_what_is_allowed() -> None:
    with pytest.raises(PolicyError) as refused:
        parse_policy("stores: {s3://b: {delete-batch: 0}}")
    assert refused.value.hint == "delete-batch takes a whole number from 1 to 1,000"
