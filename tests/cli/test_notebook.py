"""What a notebook shows: the figures of text and JSON, small charts, and nothing of what a name holds as markup."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import firnline
from firnline.cli.main import run
from firnline.lake import Lake
from firnline.model.times import parse_instant, second
from firnline.ops.looking.findings import Diagnosis, Finding, Severity
from firnline.ops.looking.pages import check_page, doctor_page, why_page
from firnline.plans.html.charts import GOES, STAYS, Share, TimedMark, share_bar, time_columns
from firnline.plans.html.markup import card, element, escaped, figures, table
from firnline.plans.pages import Drawn, Grid, Hint, Line, Page, number, size

from .conftest import SmallLake

EVENTS = "lake.ns.events"
EVIL = "<script>alert(1)</script>"
DRAWN = ("svg", "rect", "title", "line", "text", "circle", "path", "tspan", "figure", "figcaption")
PLAIN = (
    "details",
    "summary",
    "div",
    "span",
    "p",
    "br",
    "h4",
    "ul",
    "li",
    "small",
    "em",
    "pre",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
)


class Shown(HTMLParser):
    """The words that a page shows, the cells of its tables, and its elements; what does not close is an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.cells: list[str] = []
        self.names: list[str] = []
        self.attributes: set[str] = set()
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self._open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if "td" in self._open:
            self.cells[-1] += data

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def is_harmless(self) -> bool:
        known = {*DRAWN, *PLAIN}
        return {*self.names} <= known and not any(name.startswith("on") or name == "href" for name in self.attributes)


@pytest.fixture
def opened(lake: SmallLake) -> Lake:
    """The lake, with a tag and a branch that are named as an attacker would."""
    lake.events.tag(EVIL, next(iter(lake.events.changes)))
    lake.publish()
    return firnline.open(engine="local")


def said(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[str, Any]:
    """Returns what a command prints, and the same in JSON."""
    assert run([*map(str, words)]) == 0
    text = capsys.readouterr().out
    assert run([*map(str, words), "--json"]) == 0
    return text, json.loads(capsys.readouterr().out)


def test_a_plan_shows_the_figures_of_its_text_and_json(
    opened: Lake, lake: SmallLake, capsys: pytest.CaptureFixture[str]
) -> None:
    now = lake.events.now_ms
    view = opened.plan(EVENTS, now=now, keep={"last": 2})
    text, facts = said(capsys, "plan", EVENTS, "--now", now, "--keep-last", 2)
    assert facts == view.to_json()
    page = Shown(view._repr_html_())
    assert page.is_harmless()
    victims = facts["victims"]
    for figure in (number(len(facts["keep"])), number(len(facts["expire"])), size(victims["bytes"])):
        assert figure in page.words
        assert figure in text
    assert number(victims["files"]) in page.words
    assert {each["snapshot"] for each in facts["keep"]} <= {*page.cells}
    for kind, found in victims["by_kind"].items():
        row = page.cells.index(kind)
        assert page.cells[row + 1 : row + 3] == [number(found["files"]), size(found["bytes"])]
    assert "svg" in page.names
    assert EVIL in page.text, "as words"
    assert EVIL in text


def test_an_answer_to_why_shows_what_its_json_says(
    opened: Lake, lake: SmallLake, capsys: pytest.CaptureFixture[str]
) -> None:
    file, now = lake.events.live()[0], lake.events.now_ms
    for what in (file, EVIL, "main", next(iter(lake.events.changes))):
        answer = opened.why(EVENTS, str(what), now=now)
        text, facts = said(capsys, "why", EVENTS, what, "--now", now)
        assert facts == answer.to_json()
        page = Shown(answer._repr_html_())
        assert page.is_harmless()
        for each in facts.get("needed_by", [facts]):
            assert each["snapshot"] in page.text
            assert all(reason in page.text and reason in text for reason in each["reasons"])
            assert ("stays" if each["kept"] else "would expire") in page.text


def test_a_check_shows_what_is_there_and_each_fault(
    opened: Lake, lake: SmallLake, capsys: pytest.CaptureFixture[str]
) -> None:
    text, facts = said(capsys, "check", EVENTS)
    page = Shown(opened.check(EVENTS)._repr_html_())
    for figure in (number(facts["files"]), size(facts["bytes"]), number(facts["snapshots"])):
        assert figure in page.words
        assert figure in text
    lake.path(lake.events.live()[0]).unlink()
    broken = opened.check(EVENTS)
    page = Shown(broken._repr_html_())
    assert page.is_harmless()
    (fault,) = broken.to_json()["listed"]
    assert {fault["path"], fault["kind"], fault["problem"]} <= {*page.cells}
    assert "svg" in page.names


def test_runs_are_one_table_of_what_their_json_says(
    opened: Lake, lake: SmallLake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no runs" in Shown(opened.runs(EVENTS)._repr_html_()).words
    now = lake.events.now_ms
    opened.expire(EVENTS, now=now, keep={"last": 3}, grace="0s", include_outside=True)
    opened.plan(EVENTS, now=now, keep={"last": 2}, save=True)
    _, facts = said(capsys, "runs", EVENTS)
    listed = opened.runs(EVENTS)
    assert facts == listed.to_json()
    page = Shown(listed._repr_html_())
    assert page.is_harmless()
    for each in facts["runs"]:
        row = page.cells.index(each["run"])
        planned = each["planned"]
        assert page.cells[row + 1] == each["state"]
        assert page.cells[row + 4 : row + 7] == [
            number(planned["snapshots"]), number(planned["victims"]["files"]), size(planned["victims"]["bytes"]),
        ]  # fmt: skip
        for outcome, tally in each["outcomes"].items():
            assert f"{outcome}: {number(tally['files'])} file" in page.cells[row + 8]
        one = Shown(opened.run(each["run"])._repr_html_())
        assert [second(parse_instant(event["at"])) in one.cells for event in each["events"]] == [True] * len(
            each["events"]
        )
    assert "svg" in page.names


def test_a_history_shows_every_day_and_draws_it(
    opened: Lake, lake: SmallLake, capsys: pytest.CaptureFixture[str]
) -> None:
    text, facts = said(capsys, "history", EVENTS)
    timeline, trouble = history = opened.history(EVENTS)
    assert trouble is None
    assert facts == timeline.to_json() == history.to_json()
    page = Shown(history._repr_html_())
    assert page.is_harmless()
    for day in facts["days"]:
        assert day["day"] in page.cells
        assert day["day"] in text
        bytes_said = f"+{size(day['added_bytes'])} -{size(day['removed_bytes'])}"
        assert bytes_said in page.cells
        assert bytes_said in text
    assert number(facts["snapshots"]["live"]) in page.words
    assert page.names.count("rect") > len(facts["days"])


def test_orphans_show_each_class_with_its_share(
    opened: Lake, lake: SmallLake, capsys: pytest.CaptureFixture[str]
) -> None:
    (lake.folder / "ns" / "events" / "data" / "left.parquet").write_bytes(b"x" * 5_000)
    text, facts = said(capsys, "orphans", EVENTS, "--dry-run")
    plan, ran = answer = opened.orphans(EVENTS, dry_run=True)
    assert ran is None
    assert facts["classes"] == answer.to_json()["classes"] == plan.to_json()["classes"]
    page = Shown(answer._repr_html_())
    assert page.is_harmless()
    for name, tally in facts["classes"].items():
        if tally["files"]:
            row = page.cells.index(name)
            assert page.cells[row + 1 : row + 3] == [number(tally["files"]), size(tally["bytes"])]
            assert size(tally["bytes"]) in text
    assert "svg" in page.names


def test_tables_show_their_names_and_how_many_there_are(
    opened: Lake, lake: SmallLake, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.register("<b>", lake.events.publish())
    names = opened.tables()
    text, facts = said(capsys, "tables")
    assert facts == names.to_json() == {"tables": [str(each) for each in names]}
    page = Shown(names._repr_html_())
    assert page.is_harmless()
    assert {*facts["tables"]} <= {*page.cells}
    assert all(each in text for each in facts["tables"])
    assert page.cells[:2] == ["lake.ns", "2"]


def test_tags_the_policy_and_the_doctor_have_a_page_too(
    opened: Lake, lake: SmallLake, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.policy("keep: {last: 3, daily: 7}\n")
    opened = firnline.open(engine="local")
    _, facts = said(capsys, "tag", "list", EVENTS)
    tags = opened.tags(EVENTS)
    assert facts == tags.to_json()
    page = Shown(tags._repr_html_())
    assert page.is_harmless()
    assert [{each["name"], each["snapshot"]} <= {*page.cells} for each in facts["tags"]] == [True, True]
    text, facts = said(capsys, "policy", "show", EVENTS)
    policy = opened.policy(EVENTS)
    assert facts == policy.to_json()
    assert f"{policy}\n" == text
    page = Shown(policy._repr_html_())
    assert page.is_harmless()
    assert {"keep last", "keep daily"} <= {*page.cells}
    found = Diagnosis(tuple(Finding(each, f"{EVIL}{each}", "said", "helps") for each in Severity))
    page = Shown(found._repr_html_())
    assert page.is_harmless()
    assert [row in page.cells for row in (*map(str, Severity), "helps")] == [True] * 4
    assert "svg" in page.names


def test_holds_tiers_an_adoption_and_a_policy_file_have_a_page_too(
    opened: Lake, lake: SmallLake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no holds" in Shown(opened.holds(EVENTS)._repr_html_()).words
    assert opened.adoption(EVENTS) == ()
    assert "nothing to write" in Shown(opened.adoption(EVENTS)._repr_html_()).text
    assert "no policy is written" in Shown(opened.check_policy()._repr_html_()).words
    lake.policy("keep: {last: 30, within: 900d}\n")
    opened = firnline.open(engine="local")
    opened.hold(EVENTS, "case-7", why=EVIL)
    opened.hold(EVENTS, "case-8", "main")
    holds, tiers, adoption = opened.holds(EVENTS), opened.tiers(EVENTS), opened.adoption(EVENTS)
    pages = [Shown(each._repr_html_()) for each in (holds, tiers, adoption, opened.check_policy())]
    assert all(each.is_harmless() for each in pages)
    assert {"case-7", "case-8", EVIL, "whole table", "it is released"} <= {*pages[0].cells}
    assert {"2", "1"} <= {*pages[0].words}
    text, facts = said(capsys, "tiers", EVENTS)
    assert facts == tiers.to_json()
    assert f"{tiers}\n" == text
    assert {each["snapshot"] for each in facts["snapshots"]} <= {*pages[1].cells}
    assert f"live: {len(facts['snapshots'])}" in pages[1].text
    assert "svg" in pages[1].names
    assert {row for each in adoption for row in (each.what, each.before, each.after)} <= {*pages[2].cells}
    assert adoption.to_json()["wanted"]
    assert pages[3].cells == ["global", "keep last 30, within 900d"]
    assert f"{opened.check_policy()}\n" == said(capsys, "policy", "check")[0]
    assert f"{holds}\n" == said(capsys, "hold", "list", EVENTS)[0]


def test_at_a_prompt_several_tables_and_their_answers_say_what_they_are(opened: Lake, lake: SmallLake) -> None:
    assert repr(opened.several()) == "<firnline verbs on several tables: every table of every catalog>"
    several = opened.several(["lake.ns.*"])
    assert "lake.ns.*" in repr(several)
    answers = several.check()
    assert "for answer in" in repr(answers)
    assert [each.table for each in answers] == [EVENTS], "and none of them is used up"


def test_answers_of_several_tables_are_one_table_and_are_not_used_up(opened: Lake, lake: SmallLake) -> None:
    lake.register("spoilt", f"file://{lake.folder}/none.json")
    several, now = opened.several(["lake.ns.*"]), lake.events.now_ms
    plans = several.plan(now=now, keep={"last": 3})
    page = Shown(plans._repr_html_())
    assert page.is_harmless()
    (found,) = [each for each in plans if each.value is not None]
    assert {EVENTS, "lake.ns.spoilt", f"keep {len(found.value.keep)}, expire {len(found.value.expire)}"} <= {
        part for cell in page.cells for part in cell.split("; ")
    }
    (problem,) = [each.problem for each in several.check() if each.problem is not None]
    assert problem.message in page.cells
    assert list(plans) == [], "who goes through them keeps none"
    with sqlite3.connect(lake.folder / "catalog.db") as database:  # a table that cannot be read may need anything
        database.execute("DELETE FROM iceberg_tables WHERE table_name = 'spoilt'")
    ran = several.expire(now=now, keep={"last": 3}, grace="1h", include_outside=True)
    words = {"check": "every file is there", "history": "live snapshot", "runs": "committed"}
    pages = {each: Shown(getattr(several, each)()._repr_html_()) for each in words}
    assert all(word in pages[each].text for each, word in words.items())
    assert "committed" in Shown(ran._repr_html_()).text


def test_printed_each_answer_is_the_page_of_its_command(
    opened: Lake, lake: SmallLake, capsys: pytest.CaptureFixture[str]
) -> None:
    now, snapshot = lake.events.now_ms, next(iter(lake.events.changes))
    (lake.folder / "ns" / "events" / "data" / "left.parquet").write_bytes(b"x" * 5_000)
    opened.expire(EVENTS, now=now, keep={"last": 3}, grace="1h", include_outside=True)
    run = opened.runs(EVENTS)[0]
    file = lake.events.live()[0]
    asked: list[tuple[Callable[[], object], list[str]]] = [
        (lambda: opened.why(EVENTS, file, now=now), ["why", EVENTS, file, "--now", str(now)]),
        (lambda: opened.why(EVENTS, snapshot, now=now), ["why", EVENTS, str(snapshot), "--now", str(now)]),
        (lambda: opened.check(EVENTS), ["check", EVENTS]),
        (lambda: opened.history(EVENTS), ["history", EVENTS]),
        (lambda: opened.runs(EVENTS), ["runs", EVENTS]),
        (lambda: run, ["runs", "show", str(run.id)]),
        (lambda: opened.orphans(EVENTS, dry_run=True), ["orphans", EVENTS, "--dry-run"]),
    ]
    for ask, words in asked:
        before, (text, _), after = f"{ask()}\n", said(capsys, *words), f"{ask()}\n"
        assert text in (before, after), words  # a page tells the minute, of which one may end meanwhile


def test_on_a_terminal_what_stays_goes_or_is_wrong_has_its_colour(opened: Lake, lake: SmallLake) -> None:
    def marked(page: Page) -> str:
        return page.to_text(paint=lambda text, tone: f"<{tone}>{text.strip()}")

    answer = opened.why(EVENTS, lake.events.live()[0], now=lake.events.now_ms)
    assert "<kept>stays" in marked(why_page(answer))
    gone = replace(answer, needed_by=tuple(replace(each, kept=False) for each in answer.needed_by))
    assert "<goes>would expire" in marked(why_page(gone))
    assert "<kept>every file is there" in marked(check_page(opened.check(EVENTS)))
    lake.path(lake.events.live()[0]).unlink()
    assert "<refused>missing" in marked(check_page(opened.check(EVENTS)))
    found = Diagnosis(tuple(Finding(each, "a topic", "said") for each in Severity))
    assert all(each in marked(doctor_page(found)) for each in ("<kept>ok", "<goes>warning", "<refused>problem"))
    assert "<" not in str(found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "made",
    [
        escaped,
        lambda text: element("p", text, title=text),
        lambda text: table((text,), [(text,)], frozenset({0})),
        lambda text: card(text, figures(of=text), text),
        lambda text: share_bar(text, [Share(text, 1, text, STAYS), Share(text, 2, text, GOES)]),
        lambda text: time_columns(text, ((text, STAYS), (text, GOES)), [TimedMark(0, 0), TimedMark(9, 1)]),
        lambda text: Page((Line(text), Hint(text), Drawn((text,)), Grid(((text,),), (text,)))).to_html(),
    ],
)
@given(text=st.text(alphabet=st.sampled_from("<>&\"'/=ab \n\u202e ;") | st.characters(), max_size=30))
def test_no_text_breaks_out_of_its_element(made: Callable[[str], str], text: str) -> None:
    assert Shown(made(text)).names == Shown(made("a")).names
    assert Shown(made(text)).is_harmless()
    assert "\u202e" not in made(text), "nor turns the direction of writing"


@given(marks=st.lists(st.builds(TimedMark, st.integers(0, 10**14), st.integers(0, 1)), min_size=1, max_size=300))
def test_a_chart_counts_every_mark_once_and_stays_small(marks: list[TimedMark]) -> None:
    page = Shown(time_columns("snapshots", (("keep", STAYS), ("expire", GOES)), marks))
    told = [word.rpartition(" ")[2] for word in page.words if ": keep " in word or ": expire " in word]
    assert sum(map(int, told)) == len(marks)
    assert len(told) <= 160


def test_what_is_shown_is_worth_no_more_than_a_screen_for_an_old_table(tmp_path: Path) -> None:
    marks = [TimedMark(each * 60_000, each % 2) for each in range(100_000)]
    assert len(time_columns("snapshots", (("keep", STAYS), ("expire", GOES)), marks)) < 40_000
