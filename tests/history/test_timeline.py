"""`firnline history`: the days of a table, also of what is gone, as a table, as JSON and as a picture."""

from __future__ import annotations

import json
import xml.etree.ElementTree as Xml
from datetime import timedelta
from pathlib import Path

import pytest

from firnline.errors import FirnlineError, UsageError
from firnline.model.times import DAY_MS, format_instant
from firnline.ops.history.reading import check_plot_name, write_plot
from firnline.ops.history.timeline import ON_A_PAGE, Day, Span, Timeline, svg_of, timeline_page
from firnline.ops.html.history import history_html
from harness.world import World
from tests.history.parts import expire

NOON = 20_000 * DAY_MS + DAY_MS // 2
SUMMARY = {
    "added-data-files": "3", "added-delete-files": "1", "deleted-data-files": "2", "added-records": "50",
    "deleted-records": "7", "added-files-size": "2048", "removed-files-size": "1024",
}  # fmt: skip


@pytest.fixture
def timeline() -> Timeline:
    found = Timeline("cat.ns.t")
    found.commit(NOON, SUMMARY, expired=True)
    found.commit(NOON + 1, {"added-records": "many", "added-data-files": "-1"}, expired=True)
    found.commit(NOON + 3 * DAY_MS, SUMMARY, expired=False)
    found.expiry(NOON + 4 * DAY_MS, 2)
    found.purge(NOON + 5 * DAY_MS, 4, 4096)
    return found


def test_a_day_adds_up_what_its_commits_say(timeline: Timeline) -> None:
    first, second, expired, purged = (day.to_json() for day in timeline.days())
    assert (first["commits"], first["added_files"], first["removed_files"]) == (2, 4, 2)
    assert (first["added_records"], first["removed_records"]) == (50, 7)
    assert (first["added_bytes"], first["removed_bytes"]) == (2048, 1024)
    assert second["commits"] == 1
    assert (expired["commits"], expired["expired"]) == (0, 2)
    assert (purged["purged_files"], purged["purged_bytes"]) == (4, 4096)
    assert timeline.to_json()["snapshots"] == {"live": 1, "expired": 2}


def test_a_span_holds_its_beginning_and_not_its_end() -> None:
    found = Timeline("t", Span(NOON, NOON + DAY_MS))
    for at in (NOON - 1, NOON, NOON + DAY_MS - 1, NOON + DAY_MS):
        found.commit(at, {}, expired=False)
    assert found.live == 2


@pytest.mark.parametrize("until", [NOON, NOON - DAY_MS])
def test_a_span_without_any_instant_is_refused(until: int) -> None:
    """An empty answer would say that nothing happened."""
    with pytest.raises(UsageError, match=r"nothing lies from .* on and before "):
        Span(NOON, until)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["t.png", "t.svg"])
def test_a_picture_that_cannot_be_written_is_told_without_numbers_of_errors(
    timeline: Timeline, tmp_path: Path, name: str
) -> None:
    place = tmp_path / name
    place.mkdir()
    with pytest.raises(FirnlineError) as told:
        write_plot(timeline, place)
    assert told.value.message == f"cannot write {place}: Is a directory"


def test_the_picture_has_a_bar_for_each_figure_and_says_it(timeline: Timeline) -> None:
    drawn = Xml.fromstring(svg_of(timeline))
    titles = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[:3] == ["2024-10-04: 2", "2024-10-07: 1", "2024-10-08: 2"]
    assert titles[-1] == "2024-10-09: 4.0 KiB"
    assert len(titles) == 2 + 1 + 4 + 4 + 4 + 1


@pytest.mark.parametrize(("days", "said"), [(1, "2024-10-04"), (2, "2024-10-04 to 2024-10-05")])
def test_the_bars_of_few_days_are_narrow_and_their_days_are_said_once(days: int, said: str) -> None:
    few = Timeline("t", by_day={n: Day(f"2024-10-{4 + n:02d}", commits=3) for n in range(days)})
    drawn = Xml.fromstring(svg_of(few))
    bars = [each for each in drawn.iter("{http://www.w3.org/2000/svg}rect") if len(each)]
    assert [float(each.get("width", "")) <= 24 for each in bars] == [True] * days
    assert [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text") if "2024" in (each.text or "")] == [
        said
    ]


def test_in_a_notebook_the_picture_is_no_wider_than_its_cell(timeline: Timeline) -> None:
    assert 'style="max-width:100%;height:auto"' in history_html(timeline)
    assert "style" not in Xml.fromstring(svg_of(timeline)).attrib, "a page scrolls, and a file is looked at by itself"


def test_on_a_page_every_colour_is_one_that_the_page_may_say(timeline: Timeline) -> None:
    def colours(drawn: str) -> set[str]:
        found = [each.get(name) for each in Xml.fromstring(drawn).iter() for name in ("fill", "stroke")]
        return {each for each in found if each}

    assert all(each.startswith("var(--firnline-") for each in colours(svg_of(timeline, ON_A_PAGE)))
    assert not any("var(" in each for each in colours(svg_of(timeline))), "a file is looked at by itself"


def test_a_picture_of_nothing_and_of_a_strange_name_is_still_one() -> None:
    drawn = Xml.fromstring(svg_of(Timeline("<a & b>")))
    assert next(each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")) == "<a & b>"


def test_the_page_says_the_same(timeline: Timeline) -> None:
    text = timeline_page(timeline).to_text()
    assert text.splitlines()[0] == "cat.ns.t: 1 live snapshot, 2 expired snapshots"
    assert "+4 -2" in text


def test_a_table_shows_its_commits_after_they_expired(world: World, tmp_path: Path) -> None:
    world.policy = "history: forever"
    before, _ = world.process().history(world.table)
    run = expire(world, grace="0s").run
    after, trouble = world.process().history(world.table, plot=tmp_path / "t.svg")
    assert trouble is None
    assert sum(day.commits for day in after.days()) == before.live == 9
    assert (after.live, after.expired) == (4, 5)
    assert sum(day.expired for day in after.days()) == 5
    assert sum(day.purged_files for day in after.days()) == run.plan["victims"]["files"]
    assert Xml.parse(tmp_path / "t.svg")
    late, _ = world.process().history(world.table, since=format_instant(world.clock() - 5 * DAY_MS))
    assert late.expired == 0
    assert json.dumps(after.to_json())


@pytest.mark.parametrize("ages", [(timedelta(days=400), "100d"), ("400d", timedelta(days=100))])
def test_days_are_asked_for_by_age_in_python_too(world: World, ages: tuple[timedelta | str, timedelta | str]) -> None:
    """As `--since 400d` does it; refused, an age would have to be counted back by hand."""
    lake = world.process()
    span = lake.history(world.table, since=ages[0], until=ages[1])[0].span
    assert span.since_ms is not None
    assert span.until_ms is not None
    assert round((span.until_ms - span.since_ms) / DAY_MS, 3) == 300
    (answer,) = lake.several([world.table]).history(since=ages[0])
    assert answer.value is not None
    assert answer.value.span.since_ms == pytest.approx(span.since_ms, abs=DAY_MS)


def test_a_png_is_drawn_too(world: World, tmp_path: Path) -> None:
    world.process().history(world.table, plot=tmp_path / "t.png")
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


def test_a_png_that_cannot_be_drawn_says_how_to_get_what_draws_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firnline.ops.history.reading.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="a PNG needs matplotlib") as refused:
        check_plot_name(Path("t.png"))
    assert "pip install 'firnline[plot]'" in str(refused.value.hint)


def test_another_kind_of_picture_is_refused(world: World, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"t\.gif"):
        world.process().history(world.table, plot=tmp_path / "t.gif")
