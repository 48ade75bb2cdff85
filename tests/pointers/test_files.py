"""What a pointer's file says and how it is named: strict to read, never two tables under one name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import UnreadableMetadata, UsageError
from firnline.pointers.document import LARGEST, Pointer, parse_pointer
from firnline.pointers.names import PointedBranch, by_identifier, by_ordinal, by_uuid, read_name
from firnline.pointers.ordinals import later, ordinal_at, ordinal_ms
from firnline.pointers.reading import newest_names

GUID = "123e4567-e89b-12d3-a456-426614174000"
SEED = {
    "version": 1,
    "table_identifier": "sales.customer",
    "guid": GUID,
    "metadata_file_path": "/foo/bar/abc.json",
    "Ordinal": "20240128T153045",
}


def read(**changed: Any) -> Pointer:
    document = {key: value for key, value in {**SEED, **changed}.items() if value is not None}
    return parse_pointer(json.dumps(document).encode(), "x.ver")


def test_the_seeds_own_example_is_read() -> None:
    found = read()
    assert found == Pointer("sales.customer", GUID, "/foo/bar/abc.json", "20240128T153045")
    assert found.to_json() == SEED


def test_a_small_ordinal_is_accepted_and_written_large() -> None:
    found = read(Ordinal=None, ordinal="20240128T153045")
    assert found.to_json() == SEED


def test_unknown_keys_are_kept() -> None:
    others = {"note": {"deep": [1, None]}, "x": 1}
    found = read(**others)
    assert found.others == others
    assert json.loads(found.to_bytes()) == {**SEED, **others}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"version": 2}, "version is 2; known is 1"),
        ({"version": "1"}, "version is '1'"),
        ({"version": True}, "version is True"),
        ({"version": None}, "no version"),
        ({"table_identifier": None}, "table_identifier is missing"),
        ({"guid": None}, "guid is missing"),
        ({"guid": "abc"}, "no UUID"),
        ({"guid": 7}, "guid is 7"),
        ({"metadata_file_path": None}, "metadata_file_path is missing"),
        ({"metadata_file_path": "metadata/x.json"}, "no absolute path"),
        ({"metadata_file_path": "s3://b/t/../u/x.json"}, "no absolute path"),
        ({"Ordinal": None}, "ordinal is missing"),
        ({"Ordinal": 20240128}, "Ordinal is 20240128"),
        ({"Ordinal": "20241328T153045"}, "no ordinal"),
        ({"Ordinal": "x", "ordinal": "y"}, "both Ordinal and ordinal"),
        ({"renamed_to": "../other.ver"}, "no name of a file beside it"),
        ({"expires_at": "soon"}, "not a timestamp"),
    ],
)
def test_what_is_not_understood_is_told_with_the_file(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UnreadableMetadata, match=rf"x\.ver is no pointer: .*{said}"):
        read(**changed)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[1]", "no object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"version": 1, "version": 1}', "written twice"),
        (b" " * (LARGEST + 1), "1,048,577 bytes"),
        (b'{"version": 1, "x": "\\ud800"}', "surrogates not allowed"),
    ],
)
def test_garbage_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(UnreadableMetadata, match=said) as told:
        parse_pointer(data, "s3://b/t/x.ver")
    assert "s3://b/t/x.ver is no pointer" in told.value.message


ODD = ("main", "20240128T153045", GUID)
NAMES = st.text(min_size=1, max_size=4).filter(lambda text: max(text) < "\ud800" or min(text) > "\udfff")
BRANCHES = st.builds(PointedBranch, st.lists(NAMES, max_size=2).map(tuple), NAMES, NAMES | st.sampled_from(ODD))
ORDINALS = st.integers(0, 253_402_300_799_999).map(ordinal_at)


@given(BRANCHES, ORDINALS)
def test_names_are_read_back(branch: PointedBranch, ordinal: str) -> None:
    named = read_name(by_identifier(branch))
    assert named is not None
    assert (named.subject, named.ordinal, named.guid) == (branch, None, None)
    logged = read_name(by_ordinal(branch, ordinal))
    assert logged is not None
    assert (logged.subject, logged.ordinal) == (branch, ordinal)
    unique = read_name(by_uuid(branch, GUID))
    assert unique is not None
    assert (unique.subject, unique.guid) == (branch, GUID)


@given(BRANCHES, BRANCHES, ORDINALS)
def test_no_two_tables_share_a_name(one: PointedBranch, other: PointedBranch, ordinal: str) -> None:
    files = [{by_identifier(each), by_ordinal(each, ordinal), by_uuid(each, GUID)} for each in (one, other)]
    assert len(files[0]) == len(files[1]) == 3
    assert one == other or not files[0] & files[1]


def test_the_seeds_collision_and_its_plain_names() -> None:
    assert by_identifier(PointedBranch(("a_b",), "c")) == "a~5Fb_c_main.ver"
    assert by_identifier(PointedBranch(("a",), "b_c")) == "a_b~5Fc_main.ver"
    assert by_identifier(PointedBranch(("sales",), "customer")) == "sales_customer_main.ver"
    assert by_identifier(PointedBranch(("eu", "sales"), "x", "dev/1")) == "eu.sales_x_dev~2F1.ver"
    assert by_ordinal(PointedBranch(("sales",), "customer"), "20240128T153045.000") == (
        "sales_customer_20240128T153045.000.ver"
    )
    assert read_name("sales_customer_20240128T153045.ver").ordinal == "20240128T153045"  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["x.ver", "a_b.ver", "a_b_c_d.ver", "a_b_c~zz.ver", "a_b_c~FF.ver", "a_b_main.txt"])
def test_other_names_say_nothing(name: str) -> None:
    assert read_name(name) is None


def test_a_name_that_no_folder_takes_is_refused() -> None:
    with pytest.raises(UsageError, match="at most 255"):
        by_identifier(PointedBranch(("ä" * 60,), "x"))


@given(st.lists(st.integers(0, 4_000), min_size=2, max_size=30))
def test_ordinals_count_up_whatever_the_clocks_say(times: list[int]) -> None:
    told: list[str] = []
    for each in times:
        told.append(later(1_700_000_000_000 + each, told[-1] if told else None))
    assert told == sorted(set(told)), "texts sort as they were given"
    assert [ordinal_ms(each) for each in told] == sorted({ordinal_ms(each) for each in told})


def test_a_time_that_no_ordinal_can_say_is_told() -> None:
    for ms, before in ((1_700_000_000_000_000, None), (0, "99991231T235959.999")):
        with pytest.raises(UnreadableMetadata, match="no time of a commit"):
            later(ms, before)


def test_branches_that_are_called_like_ordinals_are_no_log() -> None:
    branches = [PointedBranch(("a",), "b", f"{year}0101T000000") for year in (2023, 2024)]
    names = [each for branch in branches for each in (by_identifier(branch), by_uuid(branch, GUID))]
    assert newest_names(names) == sorted(names)


def test_of_a_log_the_newest_counts() -> None:
    names = ["a_b_20240128T153045.ver", "a_b_20240128T153045.001.ver", "a_b_dev_20230101T000000.ver", "a_b_main.ver"]
    assert newest_names(names) == ["a_b_20240128T153045.001.ver", "a_b_dev_20230101T000000.ver", "a_b_main.ver"]
