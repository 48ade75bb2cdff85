"""A cache that is damaged or hostile changes no answer: it can only say nothing, or what is true of these bytes."""

from __future__ import annotations

import os
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.caches.opening import OpenedCache
from firnline.caches.seal import Seal
from firnline.errors import UnreadableMetadata
from firnline.local.engine import LocalEngine
from firnline.stores.objects import ObjectStores
from firnline.testing.strategies import Script, scripts
from firnline.testing.surveys import expected
from firnline.testing.tables import SmallTable

from .lying import LIES, SECRET, Ledger, Lie, memory_of, neighbour
from .worlds import survey_with

FULL = bool(os.environ.get("FIRNLINE_FULL"))
NUMBERS = count()


def played(script: Script) -> tuple[SmallTable, set[int], ObjectStores]:
    store = ObjectStores()
    table, expired = script.play(store, f"memory://lies-{os.getpid()}-{next(NUMBERS)}/t")
    return table, expired, store


@settings(max_examples=2_000 if FULL else 50, deadline=None)
@given(script=scripts(), lie=LIES)
def test_no_lie_changes_what_a_survey_says(script: Script, lie: Lie) -> None:
    table, expired, store = played(script)
    ledger, engine = Ledger(), LocalEngine(threads=2)
    memory = memory_of(ledger)
    assert survey_with(engine, table, expired, store, memory) == expected(table, expired)
    table.append()
    assert survey_with(engine, table, expired, store, memory) == expected(table, expired)
    ledger.lie = lie
    assert survey_with(engine, table, expired, store, memory) == expected(table, expired)


@settings(max_examples=500 if FULL else 30, deadline=None)
@given(script=scripts(), doomed=st.frozensets(st.integers(0, 14)))
def test_an_honest_cache_changes_nothing_whatever_expires(script: Script, doomed: frozenset[int]) -> None:
    table, expired, store = played(script)
    memory, engine = memory_of(Ledger()), LocalEngine(threads=2)
    others = {each for place, each in enumerate(table.changes) if place in doomed}
    for chosen in (expired, others, expired):
        assert survey_with(engine, table, chosen, store, memory) == expected(table, chosen)


class _Open(Seal):
    """A seal that lets everything through: what these tests would see if seals did not hold."""

    def open(self, name: str, sealed: bytes) -> bytes | None:
        return sealed[34:]


def _said_with(table: SmallTable, expired: set[int], store: ObjectStores, memory: OpenedCache) -> object:
    """What the survey says, or its refusal: which of the two a lie brings about depends on the entry it hands out."""
    try:
        return survey_with(LocalEngine(), table, expired, store, memory)
    except UnreadableMetadata as refused:
        return refused


def test_without_seals_a_lie_would_change_the_answer() -> None:
    store = ObjectStores()
    table = SmallTable(store, f"memory://unsealed-{os.getpid()}/t")
    first = table.append(2)
    table.overwrite(table.live())
    ledger = Ledger()
    open_memory = OpenedCache("", ledger, _Open(SECRET))
    assert survey_with(LocalEngine(), table, {first}, store, open_memory) == expected(table, {first})
    ledger.lie = neighbour(1)
    assert _said_with(table, {first}, store, open_memory) != expected(table, {first})
    assert survey_with(LocalEngine(), table, {first}, store, memory_of(ledger)) == expected(table, {first})


@pytest.mark.parametrize("place", range(0, 60, 3))
def test_a_seal_covers_every_byte(place: int) -> None:
    seal = Seal(SECRET)
    sealed = bytearray(seal.close("name", b"payload of thirty-two bytes, yes"))
    assert seal.open("name", bytes(sealed)) == b"payload of thirty-two bytes, yes"
    assert seal.open("names", bytes(sealed)) is None
    sealed[place] ^= 1
    assert seal.open("name", bytes(sealed)) is None
    assert seal.open("name", bytes(sealed[:place])) is None


def test_a_secret_is_in_nothing_that_is_shown() -> None:
    assert SECRET.decode() not in repr(memory_of(Ledger()))
