"""Guesses at the token are slowed down, by whatever way they come; those who have it are not kept out for long."""

from __future__ import annotations

import pytest

from firnline.web.serving.gate import Gate, NotAllowed
from firnline.web.serving.guesses import _FORGOTTEN_S, _MOST, OF_ALL, OF_ONE, Guesses

from .conftest import TABLE, TOKEN, OpenPage


class Hand:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_each_wrong_guess_doubles_the_pause_up_to_a_minute() -> None:
    clock = Hand()
    guesses, waited = Guesses(clock), []
    for _ in range(OF_ONE.free + 9):
        waited.append(guesses.wait_s("10.0.0.9"))
        clock.now += waited[-1]
        guesses.missed("10.0.0.9")
    assert waited == [0] * OF_ONE.free + [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert guesses.wait_s("10.0.0.8") <= OF_ALL.longest_s, "another address is not kept away for it"
    clock.now += 59
    assert guesses.wait_s("10.0.0.9") == 1
    clock.now += 1
    assert guesses.wait_s("10.0.0.9") == 0


def test_guesses_from_everywhere_are_slowed_down_together() -> None:
    clock = Hand()
    guesses = Guesses(clock)
    for number in range(OF_ALL.free + 5):
        guesses.missed(f"10.0.{number}.1")
    assert guesses.wait_s("10.9.9.9") == OF_ALL.longest_s
    guesses.met("10.9.9.9")
    clock.now += OF_ALL.longest_s
    assert guesses.wait_s("10.9.9.9") == 0


def test_memory_is_bounded_and_does_not_last() -> None:
    clock = Hand()
    guesses = Guesses(clock)
    for number in range(3 * _MOST):
        guesses.missed(f"10.{number >> 8}.{number & 255}.1")
    assert len(guesses._misses) <= _MOST
    assert guesses.wait_s("10.250.0.1") > 0, "what all guessed is never what is dropped"
    clock.now += _FORGOTTEN_S + 1
    guesses.missed("10.0.0.1")
    assert guesses.wait_s("10.0.0.1") == 0


def test_one_guesser_has_one_address() -> None:
    guesses = Guesses(Hand())
    for number in range(OF_ONE.free + 1):
        guesses.missed(f"2001:db8::{number:x}")
    assert guesses.wait_s("2001:db8::ffff:1") > 0
    for _ in range(OF_ONE.free + 1):
        guesses.missed("::ffff:10.0.0.1")
    assert guesses.wait_s("10.0.0.1") > 0


def test_the_token_itself_is_not_looked_at_too_early() -> None:
    clock = Hand()
    gate = Gate(TOKEN, is_open=True, guesses=Guesses(clock))
    for _ in range(OF_ONE.free):
        with pytest.raises(NotAllowed) as wrong:
            gate.login("guess", "eve", "10.0.0.9")
        assert wrong.value.status == 401
    with pytest.raises(NotAllowed) as early:
        gate.login(TOKEN, "ann", "10.0.0.9")
    assert (early.value.status, early.value.retry_s) == (429, 1)
    assert gate.login(TOKEN, "bob", "10.0.0.8")
    clock.now += 1
    assert gate.login(TOKEN, "ann", "10.0.0.9")
    assert gate.guesses.wait_s("10.0.0.9") == 0


def test_programs_are_slowed_down_as_persons_are(page: OpenPage) -> None:
    page.gate.guesses = Guesses(Hand())
    for _ in range(OF_ONE.free):
        assert page.call("/api/do/plan", "guess", table=TABLE, by="eve").status_code == 401
    for answer in (
        page.call("/api/do/plan", table=TABLE, by="ann"),
        page.post("/login", {"who": "ann", "token": TOKEN}),
    ):
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
        assert "too many wrong tokens" in answer.text
    assert page.get("/").status_code == 200, "who only looks is not concerned"


def test_a_closed_page_counts_what_only_reads(page: OpenPage) -> None:
    page.gate.guesses, page.gate.is_open = Guesses(Hand()), False
    wrong = {"Authorization": "Bearer guess"}
    assert [page.get("/api/tables", headers=wrong).status_code for _ in range(OF_ONE.free + 1)] == [
        *[401] * OF_ONE.free,
        429,
    ]
    assert page.get("/", headers=wrong).status_code == 429
