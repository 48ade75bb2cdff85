"""Work is handed to threads from the first call that waits, and of all calls that come after it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident

from firnline.ports.expanding import SideBySide


def test_what_waits_goes_side_by_side_and_so_does_all_that_follows() -> None:
    def wait(number: int) -> tuple[int, int]:
        time.sleep(0.03)
        return number, get_ident()

    def quick(number: int) -> tuple[int, int]:
        return number, get_ident()

    with ThreadPoolExecutor(4) as pool:
        together = SideBySide(pool)
        waited = list(together(wait, range(6)))
        later = list(together(quick, range(6)))
    assert [number for number, _ in waited] == [number for number, _ in later] == list(range(6))
    assert [ident == get_ident() for _, ident in waited] == [True] + [False] * 5
    assert not any(ident == get_ident() for _, ident in later)
