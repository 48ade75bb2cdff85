"""The worker's loop: rounds in the hours that its policy gives it, until it is told to stop.

1. A round is under way when the window closes, or a signal comes.
2. Work that is under way is asked at every batch, and before every read, whether it may go on: it ends there.
3. What was begun is written down; the next round, of this worker or any other, goes on with it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from firnline.app.observing.watching import dropped_news, end_watch
from firnline.app.places import now_ms, places_of
from firnline.app.stores import Pacing
from firnline.errors import FirnlineError, Interrupted
from firnline.lake import Lake
from firnline.model.times import format_instant, tell_due
from firnline.observing.metrics import Metrics
from firnline.observing.serving import Health
from firnline.policy.parse import Section
from firnline.policy.worker.keys import LAST_MS, MARGIN_MS, MEASURED, WorkerPolicy, worker_policy
from firnline.ports.progress import Progress, Silent
from firnline.settings import read_config
from firnline.worker.jobs import jobs_end
from firnline.worker.measuring import measured_reads
from firnline.worker.memory import Memory
from firnline.worker.pulse import Pulse
from firnline.worker.report import RoundReport
from firnline.worker.rounds import RESUME, Round

_LONGEST_NAP_S = 30.0
_SETTLES_S = 1.0
_STEP_MS = 250
_LOOK_BACK_S = 8.0


@dataclass
class Hours:
    """Whether there may be work now: inside the window, and nobody said stop. The clock is looked at every time: it may
    be put forward or back.
    """

    stop: Event
    policy: WorkerPolicy
    clock: Callable[[], int] = now_ms
    beat: Callable[[], None] = lambda: None
    _told: tuple[int, bool, bool] = (-1, False, False)
    _stopped_s: float | None = None

    def may_go_on(self) -> bool:
        """Tells whether new work may be begun."""
        self.beat()
        return not self.is_ending()

    def is_ending(self) -> bool:
        """Tells the contrary, to one that watches from aside: that it asks is no sign of life."""
        return self.stop.is_set() or not self._looked()[1]

    def is_over(self) -> bool:
        return not self.may_go_on()

    def gate(self) -> None:
        """Raises Interrupted where nothing may be read any more: a while after nothing new is begun, so that a batch of
        deletes is followed by the look that belongs to it.
        """
        self.beat()
        if self.stop.is_set() and self._stopped_s is None:
            self._stopped_s = time.monotonic()
        is_late = self._stopped_s is not None and time.monotonic() - self._stopped_s > _LOOK_BACK_S
        if is_late or not self._looked()[2]:
            raise Interrupted("the worker stops here", hint="the next round goes on with it")

    def _looked(self) -> tuple[int, bool, bool]:
        """Returns whether there may be new work, and whether there may be reads. Zones are slow to ask, and this is
        asked before every read.
        """
        now = self.clock()
        if self._told[0] != now // _STEP_MS:
            begins, reads = (self.policy.opens_ms(now, each) <= now for each in (MARGIN_MS, LAST_MS))
            self._told = now // _STEP_MS, begins, reads
        return self._told


@dataclass
class Worker:
    """Keeps the tables of a configuration in policy. `told` gets each round's report, `config` names the file."""

    config: str | None
    memory: Path
    told: Callable[[RoundReport], None]
    engine: str = "auto"
    progress: Progress | None = None
    stop: Event = field(default_factory=Event)
    clock: Callable[[], int] = now_ms
    metrics: Metrics = field(default_factory=lambda: Metrics(dropped_news))
    _good: Section | None = field(default=None, init=False, repr=False)
    _distrust: str = field(default="", init=False, repr=False)
    _known: Memory | None = field(default=None, init=False, repr=False)
    _is_measured: bool = field(default=False, init=False, repr=False)
    _measured: float | None = field(default=None, init=False, repr=False)
    _last: RoundReport | None = field(default=None, init=False, repr=False)
    _pulse: Pulse = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._pulse = Pulse(self.progress or Silent())

    def health(self) -> Health:
        """Returns whether it still moves: it reads, sleeps, ends rounds, or waits for a stage that it began. One table
        that fails is no illness.
        """
        facts = self._pulse.facts()
        if self._last is not None:
            facts |= {"last_round": format_instant(self._last.ended_ms), "problems": len(self._last.problems)}
        return Health(self._pulse.is_well(), facts)

    def run(self, *, once: bool = False) -> int:
        """Works until it is told to stop, or one round; returns how many problems the last round had.

        Raises PolicyError where the configuration cannot be read at the start.
        """
        self._good = read_config(self.config)
        problems = 0
        while not self.stop.is_set():
            section = self._configured()
            policy = worker_policy(section.worker)
            opens = policy.opens_ms(self.clock())
            if opens > self.clock():
                if once:
                    logging.getLogger("firnline").warning("the window opens at %s", tell_due(opens))
                    return 0
                self._sleep_until(opens)
                continue
            report = self._round(section, policy)
            problems = len(report.problems)
            self._last = report
            self.told(report)
            if once:
                return problems
            self._sleep_until(self.clock() if report.stopped else report.again_ms)
        return problems

    def _round(self, section: Section, policy: WorkerPolicy) -> RoundReport:
        hours = Hours(self.stop, policy, self.clock, self._pulse.beat)
        pacing = Pacing(policy.budget, hours.gate, self._reads(section, policy))
        places = places_of(
            section, self.engine, progress=self._pulse, interrupted=hours.is_over, clock=self.clock, pacing=pacing
        )
        places.watch = places.watch.joined(self.metrics)
        self._known = self._known or Memory.load(self.memory)
        round_ = Round(Lake(places, self.config), policy, self._known, self.clock, hours.may_go_on)
        try:
            with jobs_end(hours.is_ending, places.engines.stop_jobs):
                report = round_.work()
        finally:
            self._pulse.end_stages()
            end_watch()  # what this round's configuration opened, such as a webhook
        for step in report.problems:
            if step.problem is not None and step.status is None and step.name != RESUME:  # runs tell of themselves
                self.metrics.failed(step.table, step.problem.kind)
        bad = {step.table for step in report.problems}
        self.metrics.tables(len(round_.memory.tables.keys() - bad), len(bad))
        return report

    def _reads(self, section: Section, policy: WorkerPolicy) -> float | None:
        """Returns how many reads a second stores take that nothing was said of; None for what is usual. They are
        measured once: what the first table's store answers.
        """
        if policy.iops != MEASURED:
            return None if policy.iops is None else float(policy.iops)
        if not self._is_measured:
            self._is_measured = True
            places = places_of(section, self.engine, clock=self.clock)
            self._measured = measured_reads(places, policy)
        return self._measured

    def _configured(self) -> Section:
        """Returns what the file says now; what it said when it was last understood, where it is not any more.

        1. An editor empties the file, or takes it away, and writes it again.
        2. The worker reads it in between: it says nothing, or only some of the rules.
        3. A round by that would expire what the policy keeps.

        So a file that changed counts when it was read twice alike, and one that says nothing any more never. Why one
        does not count is told once, and not with every round.
        """
        why = ""
        try:
            found = read_config(self.config)
            if found != self._good:
                self.stop.wait(_SETTLES_S)
                self._good, why = self._settled(found)
        except FirnlineError as problem:
            why = f"{problem.message}; {problem.hint}" if problem.hint else problem.message
        if why and why != self._distrust:
            logging.getLogger("firnline").warning("the configuration of before counts: %s", why)
        self._distrust = why
        return self._good or Section()

    def _settled(self, found: Section) -> tuple[Section | None, str]:
        """Returns a changed configuration, if it stays; else the one of before, and why. Raises where it cannot be
        read.
        """
        if read_config(self.config) != found:
            return self._good, "the file is just being written"
        if found == Section():
            return self._good, "the file says nothing any more"
        return found, ""

    def _sleep_until(self, at_ms: int) -> None:
        """Waits, by the clock and no longer than it said: one that is put forward or back, or a machine that slept, is
        noticed within seconds.
        """
        until_s = time.monotonic() + (at_ms - self.clock()) / 1000
        while not self.stop.is_set() and self.clock() < at_ms and time.monotonic() < until_s:
            self._pulse.beat()
            self.stop.wait(min(_LONGEST_NAP_S, max(0.05, (at_ms - self.clock()) / 1000)))
