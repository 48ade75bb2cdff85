"""Who hears of runs. One may stop a run, the witness; the others hear, and can neither stop nor delay it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from firnline.ports.observing.news import News


class Observer(Protocol):
    def hear(self, news: News) -> None:
        """Takes note, at once: what takes time is done by a thread of the observer's own."""
        ...


Witness = Callable[["News"], None]
"""Writes news down for good before the run goes on. Raises RefusedForSafety where it cannot."""


def no_witness(news: News) -> None:
    return None


@dataclass(frozen=True, slots=True)
class RunWatch:
    """Everyone who hears of the runs of a process."""

    witness: Witness = no_witness
    observers: tuple[Observer, ...] = ()

    def attest(self, news: News) -> None:
        """Lets the witness write the news down, before what they tell of is done. Raises RefusedForSafety where there
        is a witness and it cannot: then it must not be done.
        """
        self.witness(news)

    def tell(self, news: News) -> None:
        """Tells every observer. Whatever goes wrong with one of them stops neither the run nor the others."""
        for observer in self.observers:
            with suppress(Exception):
                observer.hear(news)

    def joined(self, *observers: Observer) -> RunWatch:
        """Returns the same with more observers."""
        return RunWatch(self.witness, (*self.observers, *observers))
