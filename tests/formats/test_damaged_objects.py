"""Every trouble with a metadata object is told with its name, and all formats' decoders are understood alike."""

from __future__ import annotations

import pytest

from firnline.errors import FirnlineError, ObjectNotFound, StoreError, UnreadableMetadata, UnsupportedFormat
from firnline.formats.avro import CorruptAvro, UnsupportedAvro
from firnline.formats.damage import REPAIR, named
from firnline.formats.icechunk.reading.damage import CorruptIcechunk, UnsupportedIcechunk
from firnline.formats.opening import Doubt

KEY = "s3://lake/t/m"
TOLD = [
    (ObjectNotFound("no such key"), UnreadableMetadata, f"manifest is missing: {KEY}"),
    (CorruptAvro("a bit turned"), UnreadableMetadata, f"manifest is damaged: {KEY}: a bit turned"),
    (CorruptIcechunk("a bit turned"), UnreadableMetadata, f"manifest is damaged: {KEY}: a bit turned"),
    (Doubt("it has less"), UnreadableMetadata, f"manifest is in doubt: {KEY}: it has less"),
    (UnsupportedAvro("a codec"), UnsupportedFormat, f"manifest is not understood: {KEY}: a codec"),
    (UnsupportedIcechunk("version 3"), UnsupportedFormat, f"manifest is not understood: {KEY}: version 3"),
    (MemoryError(), UnreadableMetadata, f"manifest does not fit into memory: {KEY}"),
]


@pytest.mark.parametrize(("trouble", "told", "words"), TOLD, ids=[type(each).__name__ for each, _, _ in TOLD])
def test_a_trouble_is_told_with_the_object(trouble: Exception, told: type[FirnlineError], words: str) -> None:
    with pytest.raises(told) as refused, named("manifest", KEY):
        raise trouble
    assert (refused.value.message, refused.value.hint) == (words, REPAIR)


@pytest.mark.parametrize("known", [StoreError("try again", "later"), UnreadableMetadata("no such column", "repair it")])
def test_what_is_known_already_keeps_its_sort_and_its_hint(known: FirnlineError) -> None:
    with pytest.raises(type(known)) as refused, named("manifest", KEY):
        raise known
    assert (refused.value.message, refused.value.hint) == (f"manifest {KEY}: {known.message}", known.hint)


def test_a_mistake_of_the_program_is_no_damage() -> None:
    with pytest.raises(ZeroDivisionError), named("manifest", KEY):
        raise ZeroDivisionError
