"""A table that is dropped, or dropped and made again in its place, while a commit to it is under way: nothing of the
old one gets into the new one.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from firnline.errors import FirnlineError
from firnline.model.holds import Hold
from firnline.ops.marks.holds import add_hold
from firnline.testing.faults import Fault
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon

from .small import Copy, row, seen_by_java
from .test_consumers import made
from .test_interference import Before

__all__ = ["made"]  # a table with consumers, of which one goes
STEPS = [("put_if_absent", ".begun"), ("delete", "/snapshot-2"), ("delete", "/snapshot-6"), ("delete", "/consumer-old")]


def metadata(copy: Copy) -> set[str]:
    """Returns what is in the table's folder, without files of rows and firnline's own."""
    names = ("snapshot", "schema", "tag", "branch", "changelog", "consumer")
    found = (path for name in names for path in (Path(copy.table) / name).rglob("*") if path.is_file())
    return {path.relative_to(copy.table).as_posix() for path in found} - {"snapshot/EARLIEST", "snapshot/LATEST"}


def meanwhile(copy: Copy, fault: Fault) -> None:
    """A run that takes snapshots and a consumer, and that others come between."""
    with suppress(FirnlineError):
        copy.expire(fault, retain_last=1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("verb", "ending"), STEPS)
def test_what_was_taken_does_not_come_back_into_another_table(both: Paimon, copy: Copy, verb: str, ending: str) -> None:
    """A commit that is given up puts back what it took. The new table had the old one's consumers, at numbers that it
    gives anew: a job by that name skipped its first rows.
    """
    table = JavaTable(both.java, Path(copy.table))

    def make_again() -> None:
        shutil.rmtree(copy.table)
        table.create(Shape("java", True, (), {"bucket": "1"}))
        table.write(MAIN, [row(1, "new")])
        table.write(MAIN, [row(2, "new")])

    act = Before(verb, ending, make_again)
    meanwhile(copy, act)
    assert act.acted
    assert metadata(copy) == {"schema/schema-0", "snapshot/snapshot-1", "snapshot/snapshot-2"}
    assert seen_by_java(both, copy)[:2] == (2, 1)
    assert not copy.missing()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("verb", "ending"), STEPS)
def test_nothing_comes_back_where_a_table_was_dropped(copy: Copy, verb: str, ending: str) -> None:
    act = Before(verb, ending, lambda: shutil.rmtree(copy.table))
    meanwhile(copy, act)
    assert act.acted
    assert metadata(copy) == set()


def test_a_schema_of_a_hold_is_not_put_into_another_table(both: Paimon, copy: Copy) -> None:
    """The new table would have had the old one's columns."""
    table = JavaTable(both.java, Path(copy.table))

    def make_again() -> None:
        shutil.rmtree(copy.table)
        table.create(Shape("java", False, ("p",), {"bucket": "-1"}))

    act = Before("put_if_absent", "/schema-1", make_again)
    with suppress(FirnlineError):
        add_hold(copy.process(act).places.table_context(copy.table), Hold("all", "somebody", "a test", None))
    assert act.acted
    schemas = [json.loads(path.read_text()) for path in (Path(copy.table) / "schema").iterdir()]
    assert [each["partitionKeys"] for each in schemas] == [["p"]] * len(schemas)
