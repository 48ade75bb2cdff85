"""What firnline does to a table in its surroundings, drawn at random: each verb, cut now and then in the middle."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from firnline.model.holds import Hold
from firnline.model.times import HOUR_MS
from firnline.ops.marks.adopt import adopt
from firnline.ops.marks.holds import add_hold, release_hold
from firnline.ops.marks.tags import add_tag, remove_tag
from firnline.testing.folder_process import FolderProcess
from harness.paimon import layout
from harness.paimon.shapes import MAIN

from .aged import MEANT, age, disk
from .contents import contents_of
from .neighbourhood import FALLBACKS, Neighbourhood
from .scene import Named, Scene
from .worlds import asked

GRACE, GRACE_OVER_MS = "1m", 61_000
KEEPS = "keep: {last: 2}"
VERBS = (
    "plan", "expire", "expire with grace", "drop", "resume", "purge", "undo", "tag", "untag", "hold", "hold what went",
    "hold the table", "release", "orphans", "adopt",
)  # fmt: skip
STEPS = {
    "plan": 0.5,
    "expire": 4.0,
    "expire_later": 5,
    "drop": 4,
    "resume": 3,
    "purge": 1,
    "undo": 3,
    "tag": 1,
    "untag": 1,
    "hold": 1.5,
    "hold_what_went": 1.5,
    "hold_the_table": 1,
    "release": 1.5,
    "orphans": 1,
    "adopt": 0.7,
}


@dataclass
class Steps:
    """Firnline's verbs. Each leaves all that must be left, whatever becomes of it: see `Scene.take`."""

    scene: Scene
    around: Neighbourhood

    def __post_init__(self) -> None:
        self._numbers = count(1)
        self._holds: list[str] = []
        self._tags: list[str] = []

    @property
    def rng(self) -> random.Random:
        return self.scene.rng

    def step(self) -> None:
        """Takes a step that there is something to do with, rather one that meets what goes on around the table."""
        weights, taken = self.scene.weighed(STEPS), self.scene.taken
        weights["drop"] *= 4 if any(map(self._is_read, layout.branches(self.scene.folder))) else 1
        weights["resume"] *= 3 if self.scene.halfway else 1
        while self.scene.taken == taken:
            getattr(self, self.rng.choices(list(weights), list(weights.values()))[0])()

    def end(self) -> None:
        """Carries on what was cut, lets the grace of all runs go by, and purges them."""
        self.scene.clock.advance(GRACE_OVER_MS)
        self.scene.take("resume", lambda it: it.resume(str(self.scene.folder)), cut=0)

    # ---- runs

    def plan(self) -> None:
        before = self.scene.picture()
        self.scene.take("plan", lambda it: it.plan(self.scene.address(), **asked(self.rng, self.scene.world.now)))
        assert self.scene.picture() == before, "a plan changes nothing"

    def expire(self, asked_for: dict[str, Any] | None = None) -> None:
        terms = {**(asked_for or asked(self.rng, self.scene.world.now)), "grace": "0s", "sole_writer": True}
        confirm = self.scene.noting(self._while_asked())
        act = self._expire(terms, confirm)
        self.scene.take("expire", act, exact=True)

    def expire_later(self, asked_for: dict[str, Any] | None = None) -> None:
        terms = {**(asked_for or asked(self.rng, self.scene.world.now)), "grace": GRACE}
        self.scene.take("expire with grace", self._expire(terms, self.scene.noting(self._while_asked())))

    def _expire(self, terms: dict[str, Any], confirm: Callable[..., None]) -> Callable[[FolderProcess], Any]:
        return lambda it: it.expire(self.scene.address(), confirm=confirm, **terms)

    def _while_asked(self) -> Callable[[], None]:
        """Now and then another writer commits while the question is open."""
        if self.scene.calm or self.rng.random() < 0.8:
            return lambda: None
        return self.scene.interrupted(self.around.write)

    def drop(self) -> None:
        """Of a branch, or of a tag; the branch is made again while the question is open, or is read by another one."""
        branches = layout.branches(self.scene.folder)[1:]
        tags = [each for each in layout.tags(self.scene.folder, MAIN) if not each.startswith("firnline-")]
        if not branches and not tags:
            return
        read = [each for each in branches if self._is_read(each)]
        name = self.rng.choice(self.rng.choice([each for each in (read, branches, branches, tags) if each]))
        again = name in branches and self.rng.random() < 0.3
        then = self.scene.interrupted(lambda: self.around.make_again(name)) if again else lambda: None
        terms = {"grace": self.rng.choice(["0s", GRACE]), "sole_writer": True, "blast_radius": 1.0}
        confirm = self.scene.noting(then, meant=name)
        act: Callable[[FolderProcess], Any] = lambda it: it.drop(self.scene.address(), [name], confirm=confirm, **terms)  # noqa: E731
        self.scene.take("drop", act, exact=terms["grace"] == "0s" and not again)
        assert name not in read or name in layout.branches(self.scene.folder), "another branch is read with this one"

    def _is_read(self, name: str) -> bool:
        others = (each for each in layout.branches(self.scene.folder) if each != name)
        said = [layout.options(self.scene.folder, each) for each in others]
        return any(each.get(option) == name for each in said for option in FALLBACKS)

    def resume(self) -> None:
        self._let_time_pass()
        self.scene.take("resume", lambda it: it.resume(self.scene.address()))

    def purge(self) -> None:
        self._let_time_pass()
        self.scene.take("purge", lambda it: it.purge_table(self.scene.address()))

    def _let_time_pass(self) -> None:
        if self.scene.calm or self.rng.random() < 0.7:
            self.scene.clock.advance(GRACE_OVER_MS)

    def undo(self) -> None:
        """All that the run took is back, but what has been made anew since."""
        runs = [each for each in self.scene.plans if each.run and not each.ended]
        if not runs:
            return
        chosen = self.rng.choice(runs[-2:])
        answer = self.scene.take("undo", lambda it: it.undo(f"{self.scene.address()}@{chosen.run}"))
        if answer is not None and answer.state == "undone" and not answer.left_alone:
            missing = chosen.contents - set(contents_of(self.scene.folder).values())
            assert not missing, (sorted(missing), "an undo brings back all that a run took")
            self.scene.counts["undone runs of which all is back"] += 1

    # ---- marks

    def tag(self) -> None:
        name, retain = f"mine-{next(self._numbers)}", self.rng.choice([None, HOUR_MS])
        snapshot = str(self.rng.choice(layout.snapshots(self.scene.folder, MAIN)))
        self._tags.append(name)
        self.scene.take(
            "tag", lambda it: add_tag(it.places.table_context(self.scene.address()), name, snapshot, retain)
        )

    def untag(self) -> None:
        """Takes a tag away at once, where the snapshot stays without it."""
        there = set(layout.snapshots(self.scene.folder, MAIN))
        found = {root.name: each.number for root, each in contents_of(self.scene.folder).items() if root.kind == "tag"}
        mine = [name for name in self._tags if found.get(name) in there]
        if mine:
            name = self.rng.choice(mine)
            self.scene.plans.append(Named(frozenset(), frozenset({name}), "no run", "done"))
            self.scene.take("untag", lambda it: remove_tag(it.places.table_context(self.scene.address()), name))

    def hold(self) -> None:
        name, snapshot = f"h{next(self._numbers)}", str(self.rng.choice(layout.snapshots(self.scene.folder, MAIN)))
        hold = Hold(name, "a test", "a world", snapshot)
        answer = self.scene.take("hold", lambda it: add_hold(it.places.table_context(self.scene.address()), hold))
        held = [each for each in self._main_contents() if str(each.number) == snapshot]
        if answer is not None and held:
            self._note(name, held[0])

    def _main_contents(self) -> list[Any]:
        found = contents_of(self.scene.folder).items()
        return [each for root, each in found if root.kind == "snapshot" and root.branch == MAIN]

    def _note(self, name: str, content: Any) -> None:
        self._holds.append(name)
        self.scene.held[name] = content

    def hold_what_went(self) -> None:
        """A snapshot that a run took out, and whose files are there."""
        out = [each for plan in self.scene.plans if plan.state == "committed" for each in sorted(plan.contents)]
        out = [each for each in out if each not in contents_of(self.scene.folder).values()]
        if not out:
            return
        content, name = self.rng.choice(out), f"h{next(self._numbers)}"
        known = str(content.number) if content.branch == MAIN else f"{content.branch}:{content.number}"
        hold = Hold(name, "a test", "a world", known)
        if (
            self.scene.take("hold what went", lambda it: add_hold(it.places.table_context(self.scene.address()), hold))
            is not None
        ):
            self._note(name, content)

    def hold_the_table(self) -> None:
        if self.scene.table_held:
            return
        hold = Hold("table", "a test", "a world", None)
        answer = self.scene.take(
            "hold the table", lambda it: add_hold(it.places.table_context(self.scene.address()), hold)
        )
        self.scene.table_held = answer is not None

    def release(self) -> None:
        names = [*self._holds, *(["table"] if self.scene.table_held else [])]
        if not names:
            return
        name = self.rng.choice(names)
        content = self.scene.held.pop(name, None)
        self.scene.take("release", lambda it: release_hold(it.places.table_context(self.scene.address()), name))
        if self.scene.how == "refused":  # one that was cut may be released, or not
            self.scene.held |= {} if content is None else {name: content}
        elif name == "table":
            self.scene.table_held = False
        else:
            self._holds.remove(name)

    # ---- the rest

    def orphans(self) -> None:
        old = disk(self.scene.folder, self.scene.world.root / "elsewhere")
        age(path for path in old if "/tag/" not in path and "/consumer/" not in path)
        terms = {"include_outside": True, **MEANT}
        self.scene.take("orphans", lambda it: it.orphans(self.scene.address(), **terms))

    def adopt(self) -> None:
        self.scene.take("adopt", lambda it: adopt(it.places.table_context(self.scene.address())), policy=KEEPS)
