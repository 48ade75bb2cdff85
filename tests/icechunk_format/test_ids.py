"""Ids as bytes and as names."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.formats.icechunk import ids
from firnline.formats.icechunk.names import NAME, is_object_name

LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def by_hand(identifier: bytes) -> str:
    bits = "".join(f"{byte:08b}" for byte in identifier)
    bits += "0" * (-len(bits) % 5)
    return "".join(LETTERS[int(bits[at : at + 5], 2)] for at in range(0, len(bits), 5))


def letters(*names: str) -> np.ndarray:
    return np.frombuffer("".join(names).encode(), np.uint8).reshape(len(names), -1)


@given(st.lists(st.binary(min_size=12, max_size=12), min_size=1, max_size=80))
def test_both_ways(some: list[bytes]) -> None:
    rows = np.frombuffer(b"".join(some), np.uint8).reshape(-1, 12)
    names = ids.names_of(rows)
    assert names == [by_hand(each) for each in some]
    assert all(map(is_object_name, names))
    back, known = ids.ids_of(letters(*names))
    assert known.all()
    assert np.array_equal(back, rows)
    assert ids.letters_of(rows).tobytes().decode() == "".join(names)
    assert ids.column_of(rows).to_pylist() == some


@given(st.binary(min_size=8, max_size=8))
def test_names_of_nodes(identifier: bytes) -> None:
    assert ids.name_of(identifier) == by_hand(identifier)
    assert len(ids.name_of(identifier)) == 13


def test_the_names_that_the_format_itself_tells_of() -> None:
    assert ids.name_of(bytes(range(12))) == "000G40R40M30E209185G"
    assert is_object_name("1CECHNKREP0F1RSTCMT0")


@given(st.text(st.sampled_from(LETTERS + "abILOU-/\n"), min_size=20, max_size=20))
def test_the_expression_and_the_decoder_agree_on_what_is_a_name(name: str) -> None:
    _, known = ids.ids_of(letters(name))
    assert is_object_name(name) == bool(known[0])
    assert (re.fullmatch(NAME, name) is not None) == bool(known[0])


@pytest.mark.parametrize("name", ["", "0" * 19, "0" * 21, "0" * 19 + "1", "0" * 19 + "g", "O" * 20, "0" * 19 + "é"])
def test_other_texts_are_no_names(name: str) -> None:
    assert not is_object_name(name)
