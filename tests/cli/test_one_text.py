"""Where Python takes several names, one text is one name, and never a list of its letters; no name at all is none."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import firnline
from firnline.app.naming import texts_meant
from firnline.app.requests import search_of
from firnline.errors import FirnlineError, UsageError
from firnline.lake import Lake
from firnline.ops.tiers.waking import Inquiry

TABLE = "lake.ns.events"
MISSING = "nothing-has-this-name"

CALLS: dict[str, Callable[[Lake, Any], object]] = {
    "drop": lambda lake, names: lake.plan(TABLE, drop=names),
    "graph": lambda lake, names: lake.graph(TABLE, drop=names),
    "refs": lambda lake, names: lake.drop(TABLE, names),
    "also": lambda lake, names: lake.orphans(TABLE, also=names, dry_run=True),
    "files": lambda lake, names: lake.erasures.plan(TABLE, names),
    "carry_out": lambda lake, names: lake.erasures.carry_out(TABLE, names, Inquiry("1", "A"), None, lambda plan: None),
}


@pytest.mark.parametrize("call", CALLS)
def test_one_text_is_one_name(lake: Any, call: str) -> None:
    with pytest.raises(FirnlineError, match=MISSING):
        CALLS[call](firnline.open(), MISSING)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("wrong", [7, b"name", {"name": 1}, [None], [("a", "b")]], ids=repr)
def test_what_names_nothing_is_refused_in_words(lake: Any, call: str, wrong: Any) -> None:
    with pytest.raises(UsageError, match="is no list of texts"):
        CALLS[call](firnline.open(), wrong)


@pytest.mark.parametrize("kind", [list, tuple, deque, iter])
def test_several_come_in_any_order_that_python_has(kind: Callable[[Iterable[Any]], Iterable[str]]) -> None:
    several = kind(["12", 34])
    assert texts_meant("trust", several) == ("12", "34")


def test_one_text_that_is_trusted_is_one_snapshot(lake: Any) -> None:
    assert firnline.open(trust="3000000000000000002").places.trust == {"3000000000000000002"}
    assert firnline.open(trust="*").places.trust == {"*"}


def test_a_search_takes_what_its_hints_say(tmp_path: Path) -> None:
    asked = search_of(same=[("s3://a", "s3://b")], dead={"7"}, also=["s3://c", tmp_path])
    assert (asked.same, asked.dead, asked.also) == ((("s3://a", "s3://b"),), {"7"}, ("s3://c", str(tmp_path)))
    assert search_of(dead="7f").dead == {"7f"}


@pytest.mark.parametrize("wrong", ["s3://a=s3://b", ["s3://a=s3://b"], [("a", "b", "c")], [("a", 1)], 7, {"a": "b"}])
def test_pairs_that_are_none_are_refused_in_words(wrong: Any) -> None:
    with pytest.raises(UsageError, match="is no list of pairs") as refused:
        search_of(same=wrong)
    assert refused.value.hint == 'same=[("s3://old-name", "s3://new-name")]'


def test_no_table_is_not_every_table(lake: Any) -> None:
    lake.policy("pointers: identifier\n")
    opened = firnline.open()
    assert opened.pointers.sync([]) == []
    assert [each.table for each in opened.pointers.sync()] == [TABLE]
    assert list(opened.several([]).plan()) == []
