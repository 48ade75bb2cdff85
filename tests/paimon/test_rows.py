"""The rows of Paimon tables in SQL, through pypaimon: of snapshots, tags and branches, as Paimon's Java reads them."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterable, Iterator

import pytest

from firnline.errors import UnsupportedFormat, UsageError
from firnline.formats.paimon.kit import PaimonKit
from firnline.formats.paimon.table import PaimonFormat
from firnline.sql.asking import RelationRequest, asked_of, open_relation
from firnline.sql.relations import TimeBounds
from firnline.sql.session import Statements
from firnline.stores.objects import ObjectStores
from harness.paimon.environment import interpreter
from harness.paimon.java_table import JavaTable
from harness.paimon.rows import java_rows, readable
from harness.paimon.shapes import MAIN, Row
from harness.paimon.worlds import Paimon
from harness.servers.process import Missing

from .small import Copy


@pytest.fixture
def pypaimon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets this process find pypaimon, and nothing else of its environment that is here already."""
    try:
        python = interpreter()
    except Missing as why:
        pytest.skip(str(why))
    (packages,) = (python.parent.parent / "lib").glob("python*/site-packages")
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "pypaimon":
            del sys.modules[name]


SHOWN = 3
"""Number, text and partition: the other columns are moments, which Java tells as numbers."""


def of_java(read: Iterable[Row]) -> list[tuple[object, ...]]:
    return sorted((tuple(each[:SHOWN]) for each in read), key=repr)


def rows(copy: Copy, **options: str) -> list[tuple[object, ...]]:
    """Returns the first columns of the rows after a journey such as the one to an executor."""
    relation, _ = open_relation(asked_of({"table": copy.table, "what": "rows", **options}))
    names = relation.schema.names[:SHOWN]
    relation, pieces = pickle.loads(pickle.dumps((relation, list(relation.pieces(TimeBounds())))))
    batches = [each for piece in pieces for each in relation.read(piece, names)]
    return sorted((tuple(row.values()) for each in batches for row in each.to_pylist()), key=repr)


def test_rows_of_every_snapshot_and_tag_are_as_java_reads_them(both: Paimon, copy: Copy, pypaimon: None) -> None:
    table = JavaTable(both.java, copy.folder / "t")
    read = java_rows(table, [root for root in readable(table.folder) if root.branch == MAIN])
    assert len(read) >= 7
    for root, expected in read.items():
        assert rows(copy, versionAsOf=root.name) == of_java(expected)


def test_rows_of_a_branch_and_of_an_instant(both: Paimon, copy: Copy, pypaimon: None) -> None:
    table = JavaTable(both.java, copy.folder / "t")
    on_side = [root for root in readable(table.folder) if root.branch == "side" and root.kind == "snapshot"]
    newest = max(on_side, key=lambda root: int(root.name))
    assert rows(copy, versionAsOf="side") == of_java(java_rows(table, [newest])[newest])
    snapshots = open_relation(RelationRequest(copy.table, "snapshots"))[0]
    assert snapshots.schema.names
    now = rows(copy)
    assert rows(copy, timestampAsOf="2100-01-01T00:00:00Z") == now
    with pytest.raises(UsageError, match="no snapshot from"):
        rows(copy, timestampAsOf="2000-01-01T00:00:00Z")


def test_spark_is_asked_for_the_same_by_paimons_own_options(copy: Copy) -> None:
    kit, state = PaimonKit(), PaimonFormat(ObjectStores()).load(copy.table, copy.table)
    by_tag = next(ref.snapshot for ref in state.refs.values() if ref.name == "two")
    sources = {each: kit.spark_source(state, each) for each in ("7", by_tag, state.refs["side"].snapshot)}
    assert {each.name for each in sources.values()} == {"paimon"}
    assert sources["7"].options == {"scan.snapshot-id": "7"}
    assert sources[state.refs["side"].snapshot].options["branch"] == "side"
    copy.expire()
    state = PaimonFormat(ObjectStores()).load(copy.table, copy.table)
    assert kit.spark_source(state, state.refs["two"].snapshot).options == {"scan.tag-name": "two"}


def test_without_a_reader_of_paimons_own_it_is_said_which_there_are(copy: Copy) -> None:
    with pytest.raises(UnsupportedFormat, match="rows of a paimon table") as refused:
        rows(copy)
    assert "pypaimon" in refused.value.hint
    assert "org.apache.paimon:paimon-spark" in refused.value.hint


def test_a_query_of_rows_is_left_to_spark_which_may_have_that_runtime(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of columns are looked at before Spark starts, where something here can read them."""
    monkeypatch.setattr(Statements, "_is_started", False)
    answers = Statements(copy.process().places).run(f"SELECT none_of_them FROM `{copy.table}`")
    assert isinstance(answers, Iterator)  # nothing ran yet, and nothing was refused
