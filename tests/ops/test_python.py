"""firnline from Python: `firnline.open().plan(…)`, its files, its page in a notebook, and what it refuses."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

import firnline
from firnline.app.moments import duration_ms, instant, rule_texts
from firnline.app.places import places_of
from firnline.errors import BadTimestamp, NoSuchTable, PolicyError, UsageError
from firnline.lake import Lake
from firnline.model.times import DAY_MS, format_instant, parse_duration, parse_instant
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


def test_an_instant_may_be_a_datetime_with_its_zone(table: SmallTable) -> None:
    lake, at = firnline.open(), datetime.fromtimestamp(table.now_ms / 1000, UTC)
    elsewhere = at.astimezone(timezone(timedelta(hours=9)))
    by_number = lake.plan(table.location, now=table.now_ms, older_than=table.now_ms)
    assert by_number.to_json() == lake.plan(table.location, now=at, older_than=elsewhere).to_json()


def test_a_date_means_what_its_text_means(table: SmallTable) -> None:
    lake, day = firnline.open(), datetime.fromtimestamp(table.now_ms / 1000, UTC).date()
    by_text = lake.plan(table.location, now=table.now_ms, older_than=day.isoformat())
    assert lake.plan(table.location, now=table.now_ms, older_than=day).to_json() == by_text.to_json()
    assert by_text.plan.expire
    assert instant(day) == instant(day.isoformat())
    held = [
        lake.hold(table.location, f"case-{n}", until=until)[0].until_ms
        for n, until in enumerate(["2100-01-05", date(2100, 1, 5)])
    ]
    assert held[0] == held[1] == instant("2100-01-06")


@pytest.mark.parametrize("age", [timedelta(days=3), "3d"])
def test_older_than_may_be_an_age_counted_back_from_now(table: SmallTable, age: timedelta | str) -> None:
    lake = firnline.open()
    by_age = lake.plan(table.location, now=table.now_ms, older_than=age)
    by_number = lake.plan(table.location, now=table.now_ms, older_than=table.now_ms - 3 * DAY_MS)
    assert by_age.to_json() == by_number.to_json()
    assert by_age.plan.expire


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        (datetime(2026, 1, 5), "without a zone"),
        (1_787_389_200_000_000, "outside the years"),
        (1_787_389_200_000_000_000, "not a timestamp"),
        (20_260_105, "a date or milliseconds"),
        (1_787_389_200, "seconds, and not milliseconds"),
        (1_787_389_200.5, "seconds, and not milliseconds"),
        (1_787_389_200_000.5, "not an instant"),
        (True, "not an instant"),
        ("yesterday", "not a timestamp"),
    ],
)
def test_what_may_mean_another_instant_is_refused_with_the_reason(table: SmallTable, moment: Any, said: str) -> None:
    """Microseconds, taken for milliseconds, would make every snapshot older than the cutoff; seconds, none."""
    for asked in ({"older_than": moment}, {"now": moment}):
        with pytest.raises(BadTimestamp, match=said) as refused:
            firnline.open().plan(table.location, **asked)
        assert "zone" in str(refused.value.hint)


def test_rules_are_numbers_texts_and_time_spans(table: SmallTable) -> None:
    lake = firnline.open()
    written = lake.plan(table.location, now=table.now_ms, keep={"daily": "3", "within": "2d12h", "tags": "a-*,b"})
    meant = lake.plan(
        table.location, now=table.now_ms, keep={"daily": 3, "within": timedelta(days=2.5), "tags": ["a-*", "b"]}
    )
    assert meant.to_json() == written.to_json()
    assert "within 2d12h (asked)" in meant.plan.policy


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        ({"daily": True}, "no value of a rule"),
        ({"daily": None}, "no value of a rule"),
        ({"daily": 3.0}, "no value of a rule"),
        ({"within": timedelta(days=-7)}, "not an age"),
        ({"within": timedelta(microseconds=1)}, "no whole number of seconds"),
        ({"tags": ["a,b"]}, "has a comma"),
        ({"tags": [3]}, "no value of a rule"),
        ({"last": timedelta(days=7)}, "not a number"),
    ],
)
def test_a_value_that_no_rule_takes_is_refused(table: SmallTable, keep: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        firnline.open().plan(table.location, now=table.now_ms, keep=keep)


@given(seconds=st.integers(0, 10**9))
def test_a_time_span_means_what_its_text_means(seconds: int) -> None:
    span = timedelta(seconds=seconds)
    assert parse_duration(rule_texts({"within": span})["within"]) == duration_ms(span) == seconds * 1000


@given(at=st.datetimes(timezones=st.timezones()))
def test_a_datetime_means_the_instant_that_its_text_means(at: datetime) -> None:
    """To the millisecond that is over: what came within it is not older."""
    whole = at.replace(microsecond=at.microsecond // 1000 * 1000)
    assert instant(at) == parse_instant(whole.isoformat())


def test_a_name_of_the_listing_is_taken_by_every_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its parts hold: a dot, a star, a quote."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/lake.db")
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("ns")
    for name in ("plain", "dotted.name", "star*", 'quo"te'):
        catalog.create_table(("ns", name), Schema(NestedField(1, "x", LongType(), required=False)))
    catalog.close()
    lake = firnline.open(engine="local")
    for table in lake.tables():
        assert isinstance(table, firnline.TableName)
        assert lake.plan(table).plan.table == str(table) == lake.plan(str(table)).plan.table
        assert lake.check(table).sound
        assert lake.runs(table) == []
        assert lake.tags(table) == []
        assert lake.policy(table)[0].table == str(table)
        assert lake.history(table).timeline.table == str(table)
        assert lake.orphans(table, dry_run=True).run is None
        assert [each.table for each in lake.several([table]).plan()] == [str(table)]
    assert [each.table for each in lake.several(lake.tables()).check()] == [str(each) for each in lake.tables()]
    assert [each.table for each in lake.several("lake.ns.p*").plan()] == ["lake.ns.plain"], "one text is one pattern"


@pytest.mark.parametrize("parts", [("ns", "plain"), ("lake", "ns", "plain"), ("ns", "dotted.name"), ("ns", 'quo"te')])
def test_the_parts_of_a_name_are_a_table_as_pyiceberg_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/lake.db")
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("ns")
    catalog.create_table(parts[-2:], Schema(NestedField(1, "x", LongType(), required=False)))
    catalog.close()
    lake = firnline.open(engine="local")
    (name,) = lake.tables()
    assert lake.plan(parts).plan.table == str(name)
    assert lake.tags(parts) == []
    assert lake.orphans(parts, dry_run=True).run is None
    assert [each.table for each in lake.several([parts]).plan()] == [str(name)]
    assert lake.several(name).named == (name,), "one name is one table"


def test_a_pattern_where_one_table_is_asked_for_is_told_what_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`no table lake.ns."*"` named one that nobody had asked for, and left open what takes patterns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/lake.db")
    SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=f"file://{tmp_path}/w").create_namespace("ns")
    for asks in (Lake.plan, Lake.check, Lake.tags):
        with pytest.raises(NoSuchTable, match=r"one table is asked for here, and lake\.ns\.\* is a pattern") as refused:
            asks(firnline.open(), "lake.ns.*")
        assert "lake.several(" in str(refused.value.hint)


@pytest.mark.parametrize("table", [None, 3, (), ("ns", 3), ("ns", None), b"lake.ns.plain"])
def test_what_names_no_table_is_told_what_a_table_is(table: Any) -> None:
    for asks in (Lake.plan, Lake.check, Lake.tags, Lake.orphans, Lake.expire):
        with pytest.raises(UsageError, match="names no table") as refused:
            asks(firnline.open(), table)
        assert '("sales", "orders")' in str(refused.value.hint)


def test_a_table_of_pyiceberg_is_told_in_a_line_what_a_table_is(tmp_path: Path) -> None:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("ns")
    made = catalog.create_table("ns.t", Schema(NestedField(1, "id", LongType())))
    with pytest.raises(UsageError, match=r"^a Table names no table$"):
        firnline.open().plan(made)  # type: ignore[arg-type]


def test_runs_of_no_table_are_told_where_those_of_every_table_are(table: SmallTable) -> None:
    for asked, hint in ((Lake.runs, "lake.several().runs()"), (Lake.resume, "lake.several().resume()")):
        with pytest.raises(UsageError, match="names no table") as refused:
            asked(firnline.open())
        assert hint in str(refused.value.hint)


@pytest.mark.parametrize("named", [firnline.TableName("lake", ("ns",), "t"), "lake.ns.t", "file:///lake/ns/t"])
def test_a_table_in_place_of_a_run_is_told_the_method_of_tables(table: SmallTable, named: Any) -> None:
    for asked, hint in ((Lake.purge, "`lake.purge_table(table)`"), (Lake.advance, "`lake.resume(table)`")):
        with pytest.raises(UsageError, match="names no run") as refused:
            asked(firnline.open(), named)
        assert hint in str(refused.value.hint)


def test_a_run_is_taken_as_a_method_returned_it(table: SmallTable) -> None:
    """`for run in lake.runs(table): lake.undo(run)` is what one writes first."""
    lake = firnline.open()
    saved = lake.plan(table.location, now=table.now_ms, include_outside=True, save=True)
    (run,) = lake.runs(table.location)
    assert run.id == saved.plan.run
    assert [lake.run(run).id, lake.run(run.id).id, lake.undo(run).id] == [run.id] * 3
    assert lake.run(run).state == "cancelled"


@pytest.mark.parametrize("run", [None, 3, ("sales", "orders")])
def test_what_names_no_run_is_told_what_a_run_is(table: SmallTable, run: Any) -> None:
    for asked in (firnline.open().run, firnline.open().undo):
        with pytest.raises(UsageError, match="names no run") as refused:
            asked(run)
        assert "its stamp alone" in str(refused.value.hint)


def test_a_folder_may_be_a_path(table: SmallTable, tmp_path: Path) -> None:
    assert firnline.open().plan(tmp_path / "t", now=table.now_ms).plan.keep


def test_a_snapshot_may_be_named_by_its_number(table: SmallTable) -> None:
    lake, head = firnline.open(), int(table.head())
    assert lake.why(table.location, head).to_json() == lake.why(table.location, str(head)).to_json()
    assert lake.tag(table.location, "by-number", head).ref.snapshot == str(head)
    held, _ = lake.hold(table.location, "case", head)
    assert held.snapshot == str(head)
    for wrong in (None, 3.5, True):
        with pytest.raises(UsageError, match="names no snapshot"):
            lake.why(table.location, wrong)  # type: ignore[arg-type]


def test_numbers_of_a_column_of_pandas_are_numbers(table: SmallTable) -> None:
    """What `table.inspect.snapshots().to_pandas()` has in its rows is no int, and is shown as one."""
    lake, head, now = firnline.open(), np.int64(int(table.head())), np.int64(table.now_ms)
    assert lake.why(table.location, head).kept  # type: ignore[arg-type]
    by_int = lake.plan(table.location, now=table.now_ms, keep={"last": 3}).to_json()
    assert lake.plan(table.location, now=now, keep={"last": np.int64(3)}).to_json() == by_int  # type: ignore[arg-type,dict-item]


@pytest.mark.parametrize(("half", "third"), [(0.5, 0.3), ("50%", "30%")])
def test_a_share_is_a_number_or_a_text(table: SmallTable, half: float | str, third: float | str) -> None:
    view = firnline.open().plan(table.location, now=table.now_ms, at_most=half, blast_radius=third)
    assert view.planned.request.at_most == 0.5
    assert view.planned.request.blast_radius == 0.3


@pytest.mark.parametrize("share", [50, -0.1, True, "half", "0%", "50", "0.5", [0.5]])
def test_what_is_no_share_is_refused_with_what_is_one(table: SmallTable, share: Any) -> None:
    for name in ("at_most", "blast_radius"):
        with pytest.raises(UsageError, match=f"{name}: .* share of") as refused:
            firnline.open().plan(table.location, **{name: share})
        assert refused.value.hint == 'write 0.5 or "50%" for a half'


@pytest.mark.parametrize("keep", ["all", ["daily"], 3, {"daily"}])
def test_rules_that_are_no_mapping_are_told_what_one_is(table: SmallTable, keep: Any) -> None:
    with pytest.raises(UsageError, match="no mapping of rules") as refused:
        firnline.open().plan(table.location, keep=keep)
    assert '{"daily": 3' in str(refused.value.hint)


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        ({"dayly": 3}, "keep: unknown rule 'dayly' (did you mean 'daily'?)"),
        ({"last": "x"}, "keep last: 'x' is not a number"),
        ({"within": 30}, "keep within: "),
    ],
)
def test_a_slip_in_a_rule_is_told_in_the_words_of_python(table: SmallTable, keep: Any, said: str) -> None:
    with pytest.raises(PolicyError) as refused:
        firnline.open().plan(table.location, keep=keep)
    words = f"{refused.value.message} {refused.value.hint}"
    assert said in words
    assert not re.search("--keep|flags|webhook|approve-above", words), "of rules, and of nothing else"


def test_a_misspelt_option_is_refused_in_the_name_of_its_method(table: SmallTable) -> None:
    lake = firnline.open()
    told = r"{}\(\) got an unexpected keyword argument 'kep'. Did you mean 'keep'"
    for method in (lake.plan, lake.expire, lake.graph, lake.archive):
        with pytest.raises(TypeError, match=told.format(method.__name__)):
            method(table.location, kep={})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=told.format("why")):
        lake.why(table.location, "main", kep={})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=told.format("plan")):
        lake.several([table.location]).plan(kep={})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"orphans\(\) .* Did you mean 'dry_run'"):
        lake.orphans(table.location, dryrun=True)  # type: ignore[call-arg]


def test_rules_are_given_by_name(table: SmallTable) -> None:
    view = firnline.open().plan(table.location, now=table.now_ms, keep={"last": "2"})
    kept = {each.id: each.reasons for each in view.plan.keep}
    assert "last #1" in kept[str(table.head())]
    assert "last 2" in view.plan.policy


def test_it_can_be_shown_in_a_notebook_and_as_text(table: SmallTable) -> None:
    view = firnline.open().plan(table.location, now=table.now_ms)
    page, text = view._repr_html_(), str(view)
    assert page.count("<table") == page.count("</table>") >= 2
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


def test_a_lake_that_is_shown_says_in_a_line_what_it_is_of(
    tmp_path: Path, table: SmallTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/lake.db")
    (tmp_path / "mine.yaml").write_text("keep: {last: 3}\n")
    shown = repr(firnline.open("mine.yaml", engine="local"))
    assert "catalogs: lake;" in shown
    assert "mine.yaml" in shown
    assert "engine local" in shown
    assert len(shown) < 150


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
