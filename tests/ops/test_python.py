"""firnline from Python: `firnline.open().plan(…)`, its files, its page in a notebook, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet
import pytest

import firnline
from firnline.app.places import places_of
from firnline.errors import BadTimestamp, NoSuchTable, PolicyError, UsageError
from firnline.lake import Lake
from firnline.model.times import format_instant
from firnline.policy.parse import parse_policy
from firnline.testing.engines import a_long_life
from firnline.testing.tables import QuickFiles, SmallTable


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallTable:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FIRNLINE_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))
    made, _ = a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t"))
    made.publish()
    return made


def test_a_plan_yields_the_files_that_would_go_one_by_one(table: SmallTable) -> None:
    view = firnline.open().plan(table.location, now=table.now_ms, include_outside=True)
    expired = [int(each.id) for each in view.plan.expire]
    assert expired
    assert sorted(view.files(), key=lambda each: str(each["path"])) == [
        {"path": path, "kind": table.made[path].kind.value, "size": table.made[path].size}
        for path in sorted(table.victims(expired))
    ]
    assert len(list(view.files())) == view.plan.victims.all.files, "and again when asked again"


def test_an_instant_may_be_a_text_or_a_number(table: SmallTable) -> None:
    lake = firnline.open()
    by_number = lake.plan(table.location, now=table.now_ms, older_than=table.now_ms)
    by_text = lake.plan(table.location, now=format_instant(table.now_ms), older_than=format_instant(table.now_ms))
    assert by_number.to_json() == by_text.to_json()
    assert len(by_number.plan.expire) > 3


def test_rules_are_given_by_name(table: SmallTable) -> None:
    view = firnline.open().plan(table.location, now=table.now_ms, keep={"last": "2"})
    kept = {each.id: each.reasons for each in view.plan.keep}
    assert "last #1" in kept[str(table.head())]
    assert "last 2" in view.plan.policy


def test_it_can_be_shown_in_a_notebook_and_as_text(table: SmallTable) -> None:
    view = firnline.open().plan(table.location, now=table.now_ms)
    page, text = view._repr_html_(), str(view)
    assert page.count("<table>") == page.count("</table>") >= 2
    for words in (table.location, f"keep {len(view.plan.keep)}", "nothing was changed"):
        assert words in page
        assert words in text
    assert all(each.id in page for each in view.plan.keep)
    assert json.loads(json.dumps(view.to_json())) == view.to_json()


def test_what_a_name_holds_is_not_taken_for_markup(table: SmallTable) -> None:
    table.tag("<b>&", next(iter(table.changes)))
    table.publish()
    page = firnline.open().plan(table.location, now=table.now_ms)._repr_html_()
    assert "&lt;b&gt;&amp;" in page
    assert "<b>" not in page


@pytest.mark.parametrize("name", ["gone.parquet", "gone.csv"])
def test_the_files_can_be_written_later(table: SmallTable, tmp_path: Path, name: str) -> None:
    view = firnline.open().plan(table.location, now=table.now_ms)
    assert view.write_files(tmp_path / name) == view.plan.victims.all.files > 0
    if name.endswith("parquet"):
        assert pyarrow.parquet.read_table(tmp_path / name).to_pylist() == list(view.files())


def test_where_nothing_expires_there_are_no_files(table: SmallTable, tmp_path: Path) -> None:
    view = firnline.open().plan(table.location, now=table.now_ms, keep={"within": "99d"})
    assert list(view.files()) == []
    assert view.plan.stages == ()
    assert view.write_files(tmp_path / "none.parquet") == 0


def test_why_answers_in_python_too(table: SmallTable) -> None:
    answer = firnline.open().why(table.location, table.live()[0])
    assert answer.kept
    assert answer.needed_by[0].snapshot == str(table.head())


def test_a_lake_that_is_shown_shows_no_password() -> None:
    assert "hunter2" not in repr(Lake(places_of(parse_policy("cache: redis://:hunter2@cache/0\n", "a test"))))


def test_what_makes_no_sense_is_refused(table: SmallTable, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="flink"):
        firnline.open(engine="flink")
    with pytest.raises(PolicyError, match="none"):
        firnline.open(str(tmp_path / "none.yaml"))
    lake = firnline.open()
    with pytest.raises(NoSuchTable):
        lake.plan(f"{tmp_path}/nothing")
    with pytest.raises(BadTimestamp):
        lake.plan(table.location, now="2026-01-05T00:00:00")
    with pytest.raises(PolicyError):
        lake.plan(table.location, keep={"lastly": "1"})
    with pytest.raises(UsageError, match=r"gone\.txt"):
        lake.plan(table.location, files=tmp_path / "gone.txt")
