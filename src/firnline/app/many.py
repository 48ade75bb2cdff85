"""One verb on many tables: each ends as if it were alone, and one that fails stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Condition
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from firnline.errors import FirnlineError, Interrupted, told_bug
from firnline.plans.answers import Found, TableAnswer
from firnline.ports.progress import Progress

if TYPE_CHECKING:  # the commands take AT_ONCE from here when they start
    from firnline.app.catalogs import Table
    from firnline.app.places import Places
    from firnline.ports.catalogs import TableName

AT_ONCE = 4
"""How many tables are worked on side by side: most of the time goes to waiting for stores."""

Item = TypeVar("Item")


def on_each(
    items: Sequence[Item],
    act: Callable[[Item], Found],
    at_once: int,
    interrupted: Callable[[], bool],
    progress: Progress,
) -> Iterator[TableAnswer[Found]]:
    """Yields the answer for each table, or each run of one, in the order given; a few are under way while one is
    waited for. Once the operator asked for a stop, those under way come to their end, and each other one is answered
    with Interrupted. A mistake of our own in one table is logged in full, and takes no other with it.
    """
    interrupted()  # asked here first: a process can begin to listen for Ctrl-C in its main thread only
    if len(items) > 1:
        progress.step("tables", 0, len(items))
    acting = _Acting(act, interrupted)
    with ThreadPoolExecutor(max(1, at_once)) as pool, closing(acting):
        for done, answer in enumerate(pool.map(acting.on, items), 1):
            progress.step("tables", done, len(items))
            yield answer


class _Acting(Generic[Item, Found]):
    """One verb on items that threads take up, until it is closed: then none begins, and none is under way any more.

    1. Ctrl-C comes while a pool starts a thread, which the pool notes only after it began.
    2. The pool waits for the threads that it knows, and what was saved is called off.
    3. The other thread saves its plan after that: a run is left behind that nobody was told of.
    """

    def __init__(self, act: Callable[[Item], Found], interrupted: Callable[[], bool]) -> None:
        self._act, self._interrupted = act, interrupted
        self._changed, self._under_way, self._is_closed = Condition(), 0, False

    def on(self, item: Item) -> TableAnswer[Found]:
        with self._changed:
            if self._is_closed:
                return _not_begun(item)
            self._under_way += 1
        try:
            return answer_of(item, self._act, self._interrupted)
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: not self._under_way)


def answer_of(item: Item, act: Callable[[Item], Found], interrupted: Callable[[], bool]) -> TableAnswer[Found]:
    """Returns the answer for one table, or for some as a whole, in this thread: Ctrl-C ends it at once, while what runs
    in another thread would be waited for.
    """
    if interrupted():
        return _not_begun(item)
    try:
        return TableAnswer(str(item), act(item))
    except FirnlineError as problem:
        return TableAnswer(str(item), problem=problem)
    except Exception as bug:
        return TableAnswer(str(item), problem=told_bug(str(item), bug))


def _not_begun(item: object) -> TableAnswer[Any]:
    return TableAnswer(str(item), problem=Interrupted(f"stopped before {item}"))


def on_tables(
    places: Places,
    named: Sequence[Table] | None,
    act: Callable[[TableName], Found],
    at_once: int,
    interrupted: Callable[[], bool] | None = None,
) -> Iterator[TableAnswer[Found]]:
    """Yields the answer for each table that is named, or of every catalog if None; and why a catalog of these cannot be
    read. `interrupted` stands in for the places' own.
    """
    chosen, unread = chosen_tables(places, named)
    yield from unread
    yield from on_each(chosen, act, at_once, interrupted or places.interrupted, places.progress)


def chosen_tables(places: Places, named: Sequence[Table] | None) -> tuple[list[TableName], list[TableAnswer[Any]]]:
    """Returns the tables that are named, or of every catalog if None; and why a catalog of these cannot be read, or why
    one of several names means none: a list that was written down long ago is not stopped by a table that was dropped.
    Raises what is wrong with a name that stands alone.
    """
    chosen = places.catalogs.chosen(named).unless_alone()
    missing: list[TableAnswer[Any]] = [TableAnswer(name, problem=problem) for name, problem in chosen.missing.items()]
    return chosen.tables, [*missing, *_unread(chosen.unread)]


def _unread(catalogs: Mapping[str, FirnlineError]) -> list[TableAnswer[Any]]:
    return [TableAnswer(name, problem=problem, of_catalog=True) for name, problem in catalogs.items()]


def unless_stopped(answers: Iterator[TableAnswer[Found]]) -> Iterator[TableAnswer[Found]]:
    """Yields the answers of a verb that only looks. Raises Interrupted at the first table that it did not reach."""
    for answer in answers:
        if isinstance(answer.problem, Interrupted):
            raise answer.problem
        yield answer
