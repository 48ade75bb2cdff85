"""Progress as a terminal gets it: percent, rate and time left of what lasts, and nothing of it afterwards."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable

import pytest

from firnline.cli.terminal.progress import StepBar, TerminalProgress, spelled_s


class Watch:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Screen(io.StringIO):
    """What a terminal would show: it obeys the few signs that progress writes."""

    encoding = "utf-8"

    def lines(self) -> list[str]:
        shown, row = [""], 0
        for part in re.findall(r"\x1b\[\d*[AJ]|\r|\n|[^\x1b\r\n]+", self.getvalue()):
            if part == "\n":
                row += 1
                shown += [""] if row == len(shown) else []
            elif part == "\r":
                continue
            elif part.endswith("A") and part.startswith("\x1b"):
                row -= int(part[2:-1])
            elif part == "\x1b[J":
                shown[row:] = [""]
            else:
                shown[row] += part
        return shown


@pytest.fixture
def watch() -> Watch:
    return Watch()


def on_another_thread(act: Callable[[], None]) -> None:
    """Acts on a thread that is still alive afterwards: a thread's name is given anew once it has ended."""
    done = threading.Event()
    threading.Thread(target=lambda: (act(), done.set(), threading.Event().wait(5)), daemon=True).start()
    assert done.wait(5)


def test_a_step_that_lasts_shows_percent_rate_and_time_left(watch: Watch) -> None:
    screen = Screen()
    progress = TerminalProgress(screen, clock=watch)
    progress.step("opening manifests", 0, 1_000)
    watch.now += 2
    progress.step("opening manifests", 500, 1_000)
    assert screen.lines() == ["opening manifests:  50% ██████████░░░░░░░░░░ 500 of 1,000, 250/s, 2 s left"]
    progress.step("opening manifests", 1_000, 1_000)
    assert screen.lines() == [""], "it is over"


def test_a_step_that_is_over_within_a_second_shows_nothing(watch: Watch) -> None:
    screen = Screen()
    progress = TerminalProgress(screen, clock=watch)
    for done in range(11):
        progress.step("opening manifests", done, 10)
        watch.now += 0.05
    assert screen.getvalue() == ""


def test_steps_side_by_side_are_several_bars(watch: Watch) -> None:
    screen = Screen()
    progress = TerminalProgress(screen, clock=watch)
    progress.step("tables", 0, 4)
    on_another_thread(lambda: progress.step("copying data to cold", 0, 10))
    watch.now += 5
    progress.step("tables", 1, 4)
    assert [line.partition(":")[0] for line in screen.lines()] == ["tables", "copying data to cold"]
    watch.now += 1
    progress.step("tables", 2, 4)
    assert [line.partition(" of ")[0].split()[-1] for line in screen.lines()] == ["2", "0"]
    progress.clear()
    assert screen.lines() == [""]


def test_what_has_no_end_that_is_known_shows_how_long_it_takes(watch: Watch) -> None:
    screen = Screen()
    progress = TerminalProgress(screen, clock=watch)
    progress.step("walking on Spark", 0, None)
    watch.now += 75
    progress.step("walking on Spark", 0, None)
    assert screen.lines() == ["walking on Spark: 0, 1 min 15 s"]
    progress.step("looking at files on Spark", 0, 10)
    assert screen.lines() == [""], "the next step of the same thread ends it"


def test_time_goes_on_while_a_step_says_nothing() -> None:
    screen = Screen()
    progress = TerminalProgress(screen)
    progress.step("walking on Spark", 0, None)
    deadline = threading.Event()
    for _ in range(40):
        if "walking on Spark" in screen.getvalue():
            break
        deadline.wait(0.1)
    assert "walking on Spark: 0, 1 s" in screen.getvalue()
    progress.clear()
    assert screen.lines() == [""]


def test_what_is_over_is_told_where_that_was_asked_for(watch: Watch) -> None:
    log = io.StringIO()
    progress = TerminalProgress(log, draws=False, tells=True, clock=watch)
    progress.step("opening manifests", 0, 1_000)
    watch.now += 2
    progress.step("opening manifests", 1_000, 1_000)
    assert log.getvalue() == "opening manifests: 1,000 in 2.0 s, 500/s\n"


@pytest.mark.parametrize("width", range(20, 90, 7))
def test_a_bar_is_never_wider_than_the_terminal(width: int) -> None:
    bar = StepBar("opening manifests", 0.0, 0, 123_456, 1_234_567)
    assert len(bar.text(60.0, width)) <= width


@pytest.mark.parametrize(("seconds", "said"), [(0.2, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (7_900, "2 h 11 min")])
def test_times_are_said_in_two_units_at_most(seconds: float, said: str) -> None:
    assert spelled_s(seconds) == said
