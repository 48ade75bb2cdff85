"""Copies on threads of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import TypeVar

from firnline.errors import Interrupted
from firnline.ports.catalogs import Still, always
from firnline.ports.copying import Copy, CopyJob, CopyOutcome, Stored, Verify
from firnline.ports.packing import BundleJob, BundleOutcome, Pack
from firnline.ports.relocating import Relocate

Each = TypeVar("Each")
Outcome = TypeVar("Outcome")

_THREADS = 16
_PER_THREAD = 64


@dataclass(frozen=True, slots=True)
class LocalCopyMany:
    """`at_once` copies are under way; None: as many as serve well. Each thread holds a few pieces of one file."""

    at_once: int | None = None

    @property
    def threads(self) -> int:
        return self.at_once or _THREADS

    @property
    def rows(self) -> int:
        return self.threads * _PER_THREAD

    def copy_many(self, jobs: Sequence[CopyJob], copy: Copy, still: Still = always) -> list[CopyOutcome]:
        """The copier asks before every write: a process that was frozen between two of them sends no other."""
        return self._spread(jobs, lambda job, may: copy.copy((job,), may), still)

    def verify_many(self, copies: Sequence[Stored], verify: Verify) -> list[CopyOutcome]:
        return self._spread(copies, lambda each, may: verify.verify((each,)), always)

    def pack_many(
        self, jobs: Sequence[BundleJob], pack: Pack, relocate: Relocate, still: Still = always
    ) -> list[BundleOutcome]:
        """As copies: each thread writes one bundle, and holds a few pieces of it."""
        return self._spread(jobs, lambda job, may: pack.pack((job,), relocate, may), still)

    def _spread(
        self, all_of_them: Sequence[Each], work: Callable[[Each, Still], list[Outcome]], still: Still
    ) -> list[Outcome]:
        """Returns the outcomes in order. Files differ in size, so a thread takes the next one whenever it is free.

        Where one failed for good, or the process is stopped at once, threads that are still at it send nothing more.
        """
        stopped = Event()

        def may_still_send() -> None:
            if stopped.is_set():
                raise Interrupted("another copy failed, or was stopped", hint="`firnline resume` goes on")
            still()

        def one(each: Each) -> Outcome:
            may_still_send()
            return work(each, may_still_send)[0]

        with ThreadPoolExecutor(self.threads) as pool:
            try:
                return list(pool.map(one, all_of_them))
            except BaseException:
                stopped.set()
                raise
