"""A run behind a network that refuses, cuts, delays, and loses the answer of the commit itself: it ends right."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from firnline.app.catalogs import Catalogs
from firnline.app.engines import Engines
from firnline.app.places import Places
from firnline.app.stores import Stores
from firnline.catalogs.config import CatalogSettings
from firnline.errors import DeletesFailed, LeaseHeld, OutcomeUnknown, StoreError
from firnline.journal.events import RunState
from firnline.lake import Lake
from firnline.model.times import DAY_MS
from firnline.policy.parse import Section
from firnline.ports.catalogs import TableName
from firnline.ports.delete import Delete
from firnline.stores.delete import ObjectDelete
from harness.curves import WatchedThrottle, drawn, watched
from harness.grounds import Ground
from harness.servers import Proxy, Rule, proxy
from harness.world import World

FULL = bool(os.environ.get("FIRNLINE_FULL"))
VICTIMS = 20_000 if FULL else 1_000
TRIES = 12
PASSING = (StoreError, DeletesFailed, OutcomeUnknown)
MakeGround = Callable[[str], Ground]


class OneNamespace(Catalogs):
    """The tables of this test: others on the same server are other tests', which change and break them."""

    namespace: str

    def pointers(self) -> Iterator[tuple[TableName, str | None]]:
        return (each for each in super().pointers() if each[0].namespace == (self.namespace,))


class Watched(Stores):
    """The stores as the command line opens them; watches what paces their deletes."""

    throttles: list[WatchedThrottle]

    def delete(self, name: TableName, root: str) -> Delete:
        found = super().delete(name, root)
        assert isinstance(found, ObjectDelete)
        self.throttles.append(watched(found))
        return found


@dataclass
class Network:
    """Two bad networks, to the store and to the catalog, and a lake that knows no other way."""

    store: Proxy
    catalog: Proxy
    ground: Ground
    throttles: list[WatchedThrottle] = field(default_factory=list)

    def lake(self) -> Lake:
        """Another process, each time."""
        catalogs = OneNamespace()
        catalogs.namespace = self.ground.pointers.namespace
        behind = {**self.ground.properties, "s3.endpoint": self.store.url, "uri": self.catalog.url}
        vars(catalogs)["configured"] = {"lake": CatalogSettings("lake", "rest", self.catalog.url, behind)}
        stores = Watched(Section(), catalogs)
        stores.throttles = self.throttles
        return Lake(Places(Section(), catalogs, stores, Engines("local")))


@pytest.fixture
def network(make_ground: MakeGround) -> Iterator[Network]:
    ground = make_ground("s3+rest")
    with proxy(ground.properties["s3.endpoint"], seed=5) as store, proxy(ground.properties["uri"]) as catalog:
        yield Network(store, catalog, ground)


def _commits(method: str, path: str) -> bool:
    return method == "POST" and "/tables/" in path


def _aged_world(ground: Ground, folder: Path, victims: int) -> World:
    """A table whose oldest snapshot alone needs so many data files."""
    world = World.make(folder, ground=ground, history=False)
    writer, ages = world.writer, count(20, -5)

    def day() -> None:
        world.clock.ahead_ms = -next(ages) * DAY_MS

    day()
    with ThreadPoolExecutor(8) as pool:
        doomed = list(pool.map(lambda _: writer.data_file(), range(victims)))
    writer.commit("append", doomed)
    day()
    writer.overwrite({item.path for item in doomed}, 2)
    world.clock.ahead_ms = 0
    writer.append(2)
    return world


@pytest.mark.full
def test_a_run_ends_right_behind_a_bad_network(network: Network, tmp_path: Path) -> None:
    world = _aged_world(network.ground, tmp_path, VICTIMS)
    network.catalog.rules = [Rule("drop", when=_commits, times=1)]
    network.store.rules = [
        Rule("delay", share=0.05, times=3 if not FULL else 30, seconds=2.0),
        Rule("busy", share=0.3),
        Rule("cut", share=0.03),
        Rule("drop", share=0.1, when=lambda method, path: method == "POST" and "delete" in path),
    ]
    _insist(network, world)
    (carried,) = world.process().runs(world.table)
    assert carried.run.state is RunState.DONE
    outcomes = carried.run.events[-1].detail["outcomes"]
    gone = sum(outcomes.get(fate, {}).get("files", 0) for fate in ("deleted", "missing"))
    assert gone >= VICTIMS
    assert not [path for path in world.files() if path in world.writer.ledger.contents and _is_victim(world, path)]
    world.check()
    _saw_everything(network)
    _draw(network, tmp_path)


def _insist(network: Network, world: World) -> None:
    """Does what a person does whose command failed: the same again, or `resume` where a run had been written."""
    is_held = False
    for _ in range(TRIES):
        try:
            if not world.process().runs(world.table):
                network.lake().expire(world.table, grace="0s", blast_radius=1.0)
            elif not network.lake().resume(world.table, break_lease=is_held):
                return
        except LeaseHeld:
            # Of a try before, which did not learn what became of its last write. It is over, as a person knows.
            is_held = True
        except PASSING as error:
            print(f"again, because: {error}")


def _is_victim(world: World, path: str) -> bool:
    """Tells whether no snapshot that the table still has needs the file."""
    kept = (world.writer.ledger.truths[each].files for each in world.rows())
    named = {each["statistics-path"] for each in world.writer.document().get("statistics", ())}
    return path not in frozenset().union(*kept) | named


def _saw_everything(network: Network) -> None:
    """Fails where the network was kinder than the test says: then it showed nothing."""
    assert network.catalog.counts["drop"] == 1
    store = network.store.counts
    assert all(store[fate] for fate in ("busy", "cut", "delay", "drop")), store
    assert 0.2 < store["busy"] / (sum(store.values()) - store["delay"]) < 0.4


def _draw(network: Network, folder: Path) -> None:
    """Draws how the rate of deletes went; the store asked for less, so it must have gone down somewhere."""
    curve = sorted(moment for each in network.throttles for moment in each.curve)
    rates = [each.rate for each in curve]
    assert min(rates) < max(rates), "halved at least once"
    out = Path(os.environ.get("FIRNLINE_DRAWINGS", folder)) / "throttle.svg"
    out.write_text(drawn(curve, f"keys a second while {VICTIMS:,} deletes pass a store that refuses 30 %"))
    print(f"the rate over time: {out}")
