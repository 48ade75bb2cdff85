"""How units expand: the port of it, answers about several units as one, and portions opened side by side."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from firnline.errors import FirnlineError, UnsupportedFormat
from firnline.model.files import File, FileKind
from firnline.model.portions import portions

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


T = TypeVar("T")
R = TypeVar("R")


class Together(Protocol):
    """Does some work for each of many: `map` one after the other, a pool's `map` side by side. Keeps their order."""

    def __call__(self, work: Callable[[T], R], each: Iterable[T], /) -> Iterator[R]: ...


@dataclass(frozen=True, slots=True)
class Expanded:
    """What some units name, and they themselves: a batch of ROW_COLUMNS, and the number of the unit of each row.

    Rows that name units may have `expects` beside these: what the naming unit says is below each (`File.expects`).
    """

    rows: pa.RecordBatch
    of: np.ndarray[tuple[int], np.dtype[np.int64]]

    def numbered(self, numbers: Sequence[int]) -> Expanded:
        """Returns the same, by the numbers that the units have among more of them."""
        import numpy as np

        return Expanded(self.rows, np.asarray(numbers, dtype=np.int64)[self.of])

    def by_unit(self, units: int) -> Iterator[pa.RecordBatch]:
        """Yields the rows of each unit."""
        import numpy as np

        order = np.argsort(self.of, kind="stable")
        rows, start = self.rows.take(order), 0
        for count in np.bincount(self.of, minlength=units).tolist():
            yield rows.slice(start, count)
            start += count


def joined(parts: Iterable[tuple[Sequence[int], Expanded]]) -> Expanded:
    """Returns several answers as one. Each comes with the numbers that its units have in the whole."""
    import numpy as np

    every = [part.numbered(numbers) for numbers, part in parts]
    return Expanded(end_to_end([each.rows for each in every]), np.concatenate([each.of for each in every]))


def end_to_end(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Returns the rows of several batches as one. Where identities and keys are the same memory they stay so: paths are
    nearly all that rows are made of, and most identities are the key as it is.
    """
    import pyarrow as pa

    if len(batches) == 1:
        return batches[0]
    if any(EXPECTS in batch.schema.names for batch in batches):
        batches = [with_expectations(batch) for batch in batches]
    if not all(map(_identity_is_key, batches)):
        return pa.concat_batches(batches)
    keys = pa.concat_batches([batch.select(batch.schema.names[1:]) for batch in batches])
    return pa.record_batch([keys.column("key"), *keys.columns], schema=batches[0].schema)


def unit_of(row: Mapping[str, Any]) -> File:
    """Returns the unit that a row names."""
    return File(FileKind(row["kind"]), row["key"], row["size"], opens=True, expects=row.get(EXPECTS))


def with_expectations(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the rows with the column `expects`: empty where the units that name them say nothing of it."""
    import pyarrow as pa

    return rows if EXPECTS in rows.schema.names else rows.append_column(EXPECTS, pa.nulls(len(rows), pa.int64()))


def _identity_is_key(batch: pa.RecordBatch) -> bool:
    if batch.schema.names[:2] != ["identity", "key"]:
        return False
    one, other = batch.column(0), batch.column(1)
    pairs = zip(one.buffers(), other.buffers(), strict=True)
    same = all((a and a.address) == (b and b.address) for a, b in pairs)
    return bool(same and one.offset == other.offset)


class Expand(Protocol):
    """Opens units on an executor: small, picklable, no session, no JVM."""

    @property
    def order(self) -> tuple[FileKind, ...]:
        """The kinds of units, outermost first: all units of one kind are opened before any of the next.

        So a unit that one snapshot names directly and another through a list is still opened once, with both
        snapshots' needs known.
        """
        ...

    @property
    def folds(self) -> bool:
        """Whether a unit can take away what another names: then rows have `fold` and `op` beside ROW_COLUMNS, and only
        what the units of one snapshot add and do not remove is needed by it: `op` is +1 or -1, and the two cancel each
        other within one file and one `fold`. Units of every kind but the last are roots then, so that they can be
        opened at once.
        """
        ...

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        """Returns each unit itself, with the size that was read, and what it names. All are of one kind.

        Requests are made by `together`; decoding is cheapest for many units at once, and holds all of them in memory.
        Raises UnreadableMetadata where a unit is missing or damaged, UnsupportedFormat where it holds something
        this version does not understand, with the name of that unit. Never returns a part of what a unit names.
        """
        ...


def one_order(orders: Iterable[tuple[FileKind, ...]]) -> tuple[FileKind, ...]:
    """Returns all kinds in one order that agrees with each of these."""
    left, merged = [list(order) for order in orders], list[FileKind]()
    while left := [order for order in left if order]:
        first = [order[0] for order in left if all(order[0] not in other[1:] for other in left)]
        if not first:
            raise UnsupportedFormat("formats open units in orders that contradict each other", hint="this is a bug")
        merged.append(min(first))
        left = [order[order[0] == merged[-1] :] for order in left]
    return tuple(merged)


@runtime_checkable
class Remembering(Expand, Protocol):
    """An Expand whose answers are remembered: some units need not be opened again."""

    def recalled(self, units: Sequence[File], together: Together = map) -> tuple[list[int], Expanded] | None:
        """Returns the numbers of units that need not be opened, and what opening those would tell; None where none."""
        ...


@runtime_checkable
class Dependent(Expand, Protocol):
    """An Expand whose answers depend on more than a unit's own name and bytes."""

    def depends_on(self, unit: File) -> str | None:
        """Returns all else that this very Expand's answer depends on: where two texts are equal, so are the answers.
        None where it may be another one tomorrow, or where nothing tells. Never raises.
        """
        ...


@dataclass(frozen=True, slots=True)
class Wrapping:
    """What stands before an Expand and hands on what that one says of itself."""

    expand: Expand

    @property
    def order(self) -> tuple[FileKind, ...]:
        return self.expand.order

    @property
    def folds(self) -> bool:
        return self.expand.folds


def dependences(expand: Expand, units: Sequence[File]) -> list[str | None]:
    """Returns what the answer for each unit depends on beside its name and bytes; None where nobody may remember it.
    What stands before an Expand depends on what that one does.
    """
    while isinstance(expand, Wrapping):
        expand = expand.expand
    return [expand.depends_on(each) for each in units] if isinstance(expand, Dependent) else [""] * len(units)


ROW_COLUMNS = ("identity", "key", "size", "kind", "opens")
EXPECTS = "expects"


_PORTIONS = 2
"""Opened at a time: with more of them the interpreter's lock is what they wait for."""
_RECALLED = (1_024, 16 << 20)
"""Units and bytes of them that are recalled at a time: that takes a fraction of opening them, in time and in memory."""
_WAITED_S, _WAITED_SHARE = 0.002, 0.25
"""A call in which the whole process was idle for longer, and for more than this share of it, waited for another
machine or for a disk. By the clock alone, waiting for the interpreter's lock would call for more threads, which wait
for it as well.
"""


Opened = tuple[Sequence[int], Expanded]
"""The numbers of some units, and what those name: also by their numbers among all units."""


class Failures(Protocol):
    """Hears of units that cannot be read, by their numbers, so that the others can go on."""

    def add(self, number: int, problem: FirnlineError) -> None: ...

    def given_up(self, number: int) -> bool:
        """Tells that a unit need not be opened any more: nobody waits for what it names."""
        ...


class Portion(NamedTuple):
    """Some units that one expand opens, and their numbers among all."""

    expand: Expand
    units: list[File]
    numbers: Sequence[int]


class Opener:
    """Opens units, each with an Expand of its own, some portions at a time."""

    def __init__(self, expands: Sequence[Expand], portions_pool: ThreadPoolExecutor, requests: Together) -> None:
        self._expands = expands
        self._pool = portions_pool
        self._requests = requests

    def __call__(
        self, units: Iterable[File], by: Sequence[int] | None = None, failures: Failures | None = None
    ) -> Iterator[Opened]:
        """Yields what the units name: first of those that need not be opened, then of the others.

        `by` is the number of each unit's expand; the first opens all where that is not given. As many answers as are
        opened at a time are held, and no more. A unit that cannot be read is told to `failures`, and raised where there
        are none.
        """
        every = list(units)
        groups = self._groups(len(every), by)
        due: list[tuple[Expand, Sequence[int]]] = []
        for expand, numbers in groups:
            known: set[int] = set()
            if isinstance(expand, Remembering):
                for told, found in self._recalled(every, numbers, expand):
                    known.update(told)
                    yield told, found
            due.append((expand, [number for number in numbers if number not in known] if known else numbers))
        yield from self._opened(every, due, failures)

    def _groups(self, units: int, by: Sequence[int] | None) -> list[tuple[Expand, Sequence[int]]]:
        if by is None:
            return [(self._expands[0], range(units))]
        groups: dict[int, list[int]] = {}
        for number, of in enumerate(by):
            groups.setdefault(of, []).append(number)
        return [(self._expands[of], numbers) for of, numbers in groups.items()]

    def _recalled(self, units: Sequence[File], numbers: Sequence[int], memory: Remembering) -> Iterator[Opened]:
        """In this thread: it is many short calls, for which threads would only wait for the interpreter's lock."""
        for portion in _numbered(memory, units, numbers, *_RECALLED):
            answer = memory.recalled(portion.units, self._requests)
            if answer is not None:
                known, found = answer
                yield [portion.numbers[place] for place in known], found.numbered(portion.numbers)

    def _opened(
        self, units: Sequence[File], due: Sequence[tuple[Expand, Sequence[int]]], failures: Failures | None
    ) -> Iterator[Opened]:
        ahead: deque[tuple[Portion, Future[Expanded]]] = deque()
        portions_due = (
            each for expand, numbers in due for each in _numbered(expand, units, _wanted(numbers, failures))
        )
        try:
            for portion in portions_due:
                ahead.append((portion, self._pool.submit(portion.expand, portion.units, self._requests)))
                if len(ahead) > _PORTIONS:
                    yield from self._done(*ahead.popleft(), failures)
            while ahead:
                yield from self._done(*ahead.popleft(), failures)
        finally:
            for _, waiting in ahead:
                waiting.cancel()

    def _done(self, portion: Portion, answer: Future[Expanded], failures: Failures | None) -> Iterator[Opened]:
        """Yields what a portion names. Where that cannot be told, its units are opened one by one: nothing of those
        that can be read is lost with the other.
        """
        try:
            yield portion.numbers, answer.result().numbered(portion.numbers)
        except FirnlineError as problem:
            if failures is None:
                raise
            if len(portion.units) == 1:
                failures.add(portion.numbers[0], problem)
                return
            for unit, number in zip(portion.units, portion.numbers, strict=True):
                if not failures.given_up(number):
                    alone = Portion(portion.expand, [unit], [number])
                    yield from self._done(alone, self._pool.submit(alone.expand, alone.units, self._requests), failures)


def _wanted(numbers: Sequence[int], failures: Failures | None) -> Sequence[int]:
    return numbers if failures is None else [number for number in numbers if not failures.given_up(number)]


def _numbered(expand: Expand, units: Sequence[File], due: Sequence[int], *most: int) -> Iterator[Portion]:
    """Yields those units that are due in portions, each with their numbers."""
    start = 0
    for portion in portions((units[number] for number in due), *most):
        yield Portion(expand, portion, due[start : start + len(portion)])
        start += len(portion)


@dataclass(slots=True)
class SideBySide:
    """Does some work for each of many: one after the other while nobody waits, side by side from the first that does.

    A file of this machine is read in less time than it takes to hand it to another thread; and threads that only
    compute hand each other the interpreter's lock at every call that lets go of it.
    """

    pool: ThreadPoolExecutor
    waits: bool = False
    """Whether one of the calls so far waited; of all that is ever given to it."""

    def __call__(self, work: Callable[[T], R], each: Iterable[T], /) -> Iterator[R]:
        due = iter(each)
        for one in () if self.waits else due:
            started, worked = time.perf_counter(), time.process_time()
            done = work(one)
            took_s, busy_s = time.perf_counter() - started, time.process_time() - worked
            self.waits |= took_s - busy_s > max(_WAITED_S, took_s * _WAITED_SHARE)
            yield done
            if self.waits:
                break
        yield from self.pool.map(work, due)


@contextmanager
def opener(expands: Sequence[Expand], threads: int) -> Iterator[Opener]:
    """Hands out an Opener that makes so many requests at a time."""
    with ThreadPoolExecutor(_PORTIONS) as portions_pool, ThreadPoolExecutor(threads) as requests:
        yield Opener(expands, portions_pool, SideBySide(requests))
