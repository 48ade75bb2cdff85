"""A table in the middle of its surroundings: paths that lead to it, zones, jobs that run, and runs that wait.

After every step of firnline's all that is left is read by both of Paimon's readers, and whatever went is something
that a plan had named when it was made.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JJavaError
from pyiceberg.table import StaticTable

from firnline.errors import FirnlineError
from firnline.plans.plan import Plan
from firnline.testing.dated import Clock
from firnline.testing.faults import Died, Dying, When
from firnline.testing.folder_process import LEASE, FolderProcess
from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import TAG, PaimonRoot
from harness.paimon.reader import TableReader, walk
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon, PaimonWorld

from .contents import Content, Memory, contents_of, there
from .test_zones import ZONES, here, java_in
from .worlds import Seen, compare, compare_roots

OWN = "/_firnline/"
NOTE = "/_firnline/properties.json"
WHENS: tuple[When, ...] = ("before", "after")
WAITING = ("committing", "committed", "undoing")
HALFWAY = ("committing", "undoing")
HINTS = ("/EARLIEST", "/LATEST")
METADATA = ("/snapshot/", "/changelog/", "/tag/", "/schema/", "/consumer/", OWN)
FOCUS = 8
MOVED = ("committed", "purging", "done", "undone")
UNKNOWN: Mapping[str, str] = MappingProxyType({})
Act = Callable[[FolderProcess], Any]


@dataclass
class Named:
    """What a plan said that it takes, as it was when the plan was made; and what became of its run."""

    contents: frozenset[Content]
    refs: frozenset[str]
    run: str = ""
    state: str = "planned"

    @property
    def ended(self) -> bool:
        return self.state in ("done", "undone", "cancelled")


@dataclass
class Before:
    """The table just before a step of firnline's."""

    picture: dict[str, bytes]
    contents: dict[PaimonRoot, Content]
    seen: Seen
    view: object
    iceberg: dict[str, frozenset[str]]
    consumers: dict[str, dict[str, int]]
    there: set[str]
    """Files of snapshots that can come back, or that somebody holds."""


@dataclass
class Scene:
    """One world, and all that is known of it."""

    both: Paimon
    world: PaimonWorld
    rng: random.Random
    counts: Counter[str]
    often: frozenset[str] = frozenset()
    """Steps that this world is about."""
    calm: bool = False
    """No step is cut."""
    by_link: bool = False
    """Everybody who asks firnline comes by the link."""
    clock: Clock = field(default_factory=Clock)
    name: str = "t"
    table_held: bool = False
    plans: list[Named] = field(default_factory=list)
    held: dict[str, Content] = field(default_factory=dict)
    taken: int = 0
    how: str = ""
    was_halfway: bool = False
    """What became of the last step: done, cut, or refused."""

    def __post_init__(self) -> None:
        self.memory = Memory(self.both, self.counts)
        self.folder.parent.mkdir(parents=True)
        self.world.folder.rename(self.folder)
        self.link.symlink_to(self.folder)
        self.learn()

    def weighed(self, weights: Mapping[str, float]) -> dict[str, float]:
        return {name: weight * (FOCUS if name in self.often else 1) for name, weight in weights.items()}

    # ---- where it lies

    @property
    def folder(self) -> Path:
        """In a warehouse: Paimon keeps Iceberg metadata of no other tables."""
        return self.world.root / "w" / "db.db" / self.name

    @property
    def link(self) -> Path:
        return self.world.root / "link"

    @property
    def java(self) -> JavaTable:
        return JavaTable(self.both.java, self.folder)

    def address(self) -> str:
        """Returns the folder, or the link to it."""
        return str(self.link if self.by_link else self.rng.choice([self.folder, self.folder, self.link]))

    def rename(self) -> None:
        new = "t" if self.name != "t" else "renamed"
        self.folder.rename(self.folder.with_name(new))
        self.name = new
        self.link.unlink()
        self.link.symlink_to(self.folder)

    def reader(self) -> TableReader:
        return TableReader(self.folder, [self.world.root / "elsewhere"])

    def picture(self) -> dict[str, bytes]:
        """Returns every file with its bytes. Of firnline's own folder only the note: a refusal may leave records of
        the plan, the lease and the clock there, and changes nothing that says how the table is to be treated.
        """
        found = (path for place in (self.folder, self.world.root / "elsewhere") for path in walk(place))
        return {path: Path(path).read_bytes() for path in found if OWN not in path or path.endswith(NOTE)}

    # ---- what others do

    def learn(self) -> None:
        """Reads what others wrote. Paimon's own steps lose nothing that counts: those that would are not taken."""
        reader = self.reader()
        lost = self.memory.forget(self.folder, reader)
        assert not lost, f"Paimon's own step lost {lost}"
        self.memory.learn(self.folder, reader)

    @contextmanager
    def somewhere(self) -> Iterator[None]:
        """Lets Java and this process live in zones of their own."""
        with java_in(self.both, self.rng.choice(ZONES)), here(self.rng.choice(ZONES)):
            yield

    # ---- what firnline does

    def process(self, fault: Dying | None = None, policy: str = "") -> FolderProcess:
        return FolderProcess(fault, clock=self.clock, policy=policy)

    def noting(self, then: Callable[[], None] = lambda: None, *, meant: str = "") -> Callable[[Plan], None]:
        """Returns what is asked whether a plan is meant: it notes what the plan names, and lets others act.

        `meant` is a ref that is dropped by its name; others go only when their time is over.
        """

        def confirm(plan: Plan) -> None:
            for root in contents_of(self.folder):
                assert meant or not _refs(root) & set(plan.expire_refs) or self._is_over(root), root
            ids = {each.id.partition("@")[0] for each in plan.expire}
            found = frozenset(each for each in contents_of(self.folder).values() if _id(each) in ids)
            self.plans.append(Named(found, frozenset(plan.expire_refs)))
            then()

        return confirm

    def take(self, name: str, act: Act, *, policy: str = "", cut: float = 0.35, exact: bool = False) -> Any:
        """Returns what firnline answered; None where it refused, or was cut. Then looks at all that is left.

        `exact`: where no other run waits, the step frees all that nothing needs any more, and nothing else.
        """
        dies = not self.calm and self.rng.random() < cut
        fault = Dying(self.rng.randint(1, self.rng.choice([10, 40])), when=self.rng.choice(WHENS)) if dies else None
        self.before, answer, how = self.look(), None, "done"
        exact, states = exact and self.settled, self.states()
        self.was_halfway = any(state in HALFWAY for state in states.values())
        with self.somewhere():
            try:
                answer = act(self.process(fault, policy))
            except Died:
                how = "cut"
            except FirnlineError as refusal:
                how = f"refused ({refusal.kind})"
        self.counts[f"{name}: {how}"] += 1
        self.taken += 1
        self.how = how.partition(" ")[0]
        self.moved = {run for run, state in self.states().items() if state in MOVED and states.get(run) != state}
        self._follow_plans()
        self._judge(name, how, exact)
        if how == "cut" and self.rng.random() < 0.9:
            self.clock.advance(LEASE.length_ms + LEASE.margin_ms + 1_000)
        return answer

    def _is_over(self, root: PaimonRoot) -> bool:
        """Tells whether a tag's time is over: its file tells when it was made, in every zone."""
        path = root.path(self.folder)
        lasting = layout.document(path).get("tagTimeRetained")
        return lasting is not None and (path.stat().st_mtime + lasting) * 1000 <= self.clock()

    @property
    def halfway(self) -> bool:
        """Tells whether a run was cut, and nobody has carried it on yet."""
        return any(each.state in HALFWAY for each in self.plans)

    @property
    def settled(self) -> bool:
        """Tells whether no run waits, and nothing that is out of the table is held."""
        inside = set(contents_of(self.folder).values())
        return not self.halfway and all(each.ended for each in self.plans) and set(self.held.values()) <= inside

    def _follow_plans(self) -> None:
        """Notes what became of the runs. A plan that was refused before it became a run has ended."""
        states = self.states(searches=False)
        if states is UNKNOWN:
            return
        for stamp in states.keys() - {each.run for each in self.plans}:
            new = next((each for each in self.plans if not each.run and not each.ended), None)
            if new is not None:
                new.run = stamp
        for each in self.plans:
            each.state = states.get(each.run, each.state) if each.run else "cancelled"

    def states(self, *, searches: bool = True) -> Mapping[str, str]:
        """Returns the state of each run; UNKNOWN where the table cannot be read."""
        try:
            found = self.process().runs(str(self.folder))
        except FirnlineError:
            return UNKNOWN
        wanted = (each for each in found if searches or each.run.kind != "orphans")
        return {each.run.id.stamp: str(each.state) for each in wanted}

    def look(self) -> Before:
        waiting = (content for each in self.plans if not each.ended for content in each.contents)
        files = {path for content in (*waiting, *self.held.values()) for path in self.memory.files.get(content, ())}
        return Before(
            self.picture(),
            contents_of(self.folder),
            Seen.by(self.reader(), self.memory.rows(self.folder)),
            self.view(),
            self.iceberg(),
            self._consumers(),
            there(files, self.folder),
        )

    def interrupted(self, act: Callable[[], None]) -> Callable[[], None]:
        """Returns what others do in the middle of a step: what they leave is what a refusal must leave."""

        def acted() -> None:
            act()
            self.learn()
            self.before = self.look()

        return acted

    def view(self) -> object:
        """Returns what is read by who opens the table now: with the rows of a branch that it falls back to."""
        try:
            return sorted(self.java.rows.read(self.java.open()), key=repr)
        except Py4JJavaError as error:
            return error.java_exception.getClass().getSimpleName()

    def iceberg(self) -> dict[str, frozenset[str]]:
        """Returns the data files that PyIceberg finds by each metadata file that Paimon keeps, as far as it reads."""
        found = {}
        for place in (self.folder, self.folder.parent.parent / "iceberg" / "db" / self.name):
            for path in sorted((place / "metadata").glob("*.metadata.json")):
                with suppress(OSError, ValueError):
                    table = StaticTable.from_metadata(str(path))
                    scans = [table.scan(snapshot_id=each.snapshot_id) for each in table.snapshots()]
                    reached = {layout.plain(task.file.file_path) for scan in scans for task in scan.plan_files()}
                    found[str(path)] = frozenset(there(reached, self.folder))
        return found

    def _consumers(self) -> dict[str, dict[str, int]]:
        return {branch: layout.consumers(self.folder, branch) for branch in layout.branches(self.folder)}

    # ---- what must hold afterwards

    def _judge(self, name: str, how: str, exact: bool) -> None:
        before = self.before
        for branch in layout.branches(self.folder):
            folder = layout.branch_folder(self.folder, branch)
            assert any((folder / "schema").glob("schema-*")), f"nobody can read {branch}: it has no schema"
        if self.how == "refused":
            self._refused(name, how)
        seen = Seen.by(self.reader(), self.memory.check(self.folder))
        mirrored = self.iceberg()
        assert mirrored == before.iceberg, "what Iceberg metadata of Paimon's reaches is there as before"
        if exact and how == "done":
            reached = {path for files in mirrored.values() for path in files}
            compare(before.seen, replace(seen, restored=seen.restored | reached))
            self.counts["runs that freed exactly what nothing needs"] += 1
        else:
            compare_roots(before.seen, seen)
        self._gone(contents_of(self.folder))
        self._kept()
        self._held_as_a_whole()
        self._read_as_before()
        now = self._consumers()
        assert {name: before.consumers.get(name, each) for name, each in now.items()} == now
        if how == "done" and not any(seen.missing.values()):
            assert self.process().check(str(self.folder)).sound

    def _read_as_before(self) -> None:
        """What everybody reads is as before. Unless a run was cut: a branch that the table reads through may have been
        half there then, and its rows come before the table's own, or after them, once it is whole.
        """
        assert self.was_halfway or self.view() == self.before.view, "what everybody reads is as before"

    def _refused(self, name: str, how: str) -> None:
        """Nothing has changed. Unless one run was carried on before another one was refused, or a run was committed and
        only its purge was refused: then what went is judged as ever.
        """
        if self.moved:
            self.counts["refusals after a run had moved on"] += 1
            return
        before, now = self.before.picture, self.picture()
        changed = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
        if self.was_halfway:  # a commit that was cut and may not go on any more puts back what it had taken
            changed = {path for path in changed if path in before and not path.endswith(HINTS)}
            self.counts["refusals that put back what a cut commit had taken"] += 1
        assert not changed, f"{name} was {how}: nothing but records of firnline's own may differ, and {changed} do"

    def _gone(self, after: dict[PaimonRoot, Content]) -> None:
        """Whatever went was named by a plan when it was made; a tag too."""
        before, acting = (
            self.before.contents,
            [each for each in self.plans if each.state not in ("undone", "cancelled")],
        )
        gone = set(before.values()) - set(after.values())
        unnamed = gone - {content for each in acting for content in each.contents}
        assert not unnamed, (sorted(unnamed), "no plan had named this")
        assert not gone & set(self.held.values()), "this is held"
        refs = {name for each in acting for name in each.refs}
        for root in before.keys() - after.keys():
            if root.kind == TAG and not root.name.startswith("firnline-"):
                assert _refs(root) & refs, (root, "no plan had named this tag")

    def _kept(self) -> None:
        """What a run that can be undone took, and what is held, is there as it was: whatever other runs removed."""
        waiting = {content for each in self.plans if each.state in WAITING for content in each.contents}
        for content in waiting | set(self.held.values()):
            gone = (self.memory.files.get(content, frozenset()) & self.before.there) - there(
                self.before.there, self.folder
            )
            assert not gone, (content, sorted(gone))

    def _held_as_a_whole(self) -> None:
        """Nothing goes for as long as the whole table is held, not even what a run had taken out before."""
        if self.table_held:
            gone = set(self.before.contents.values()) - set(contents_of(self.folder).values())
            assert not gone, (sorted(gone), "the whole table is held")
            files = {path for path in self.before.picture if not any(each in path for each in METADATA)}
            assert files <= self.picture().keys(), (sorted(files - self.picture().keys()), "the whole table is held")


def _id(content: Content) -> str:
    """Returns the id that firnline gives it."""
    return str(content.number) if content.branch == MAIN else f"{content.branch}:{content.number}"


def _refs(root: PaimonRoot) -> set[str]:
    return {root.name, f"tag:{root.name}"} if root.branch == MAIN else {f"{root.branch}:{root.name}"}
