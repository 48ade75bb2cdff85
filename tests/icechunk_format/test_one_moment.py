"""A repository that changes while it is read: it is read as it was at one moment, or not at all."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock

import icechunk
import numpy as np
import pytest

from firnline.errors import UnreadableMetadata, UnsupportedFormat
from firnline.formats.icechunk import ids
from firnline.formats.icechunk.reading.repository import IcechunkRepository, read_repository
from firnline.stores.objects import ObjectStores
from harness.lanes import by_lane

from .growing import Growing, grown, made, storage
from .repositories import STORE, body_of, packed


@dataclass
class Interrupted:
    """A repository's store, in which something happens before one of the requests, or before every listing."""

    happens: Callable[[], None]
    before: int | None
    asked: int = 0
    store: ObjectStores = field(default_factory=ObjectStores)
    lock: Lock = field(default_factory=Lock)

    def __getattr__(self, verb: str) -> Callable[[str], object]:
        asks = getattr(self.store, verb)

        def asked(key: str) -> object:
            with self.lock:  # requests are made side by side
                if self.asked == self.before or (self.before is None and verb == "list"):
                    self.happens()
                self.asked += 1
            return asks(key)

        return asked


def copied(small: Path, tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    shutil.copytree(small, folder)
    return folder


def requests(folder: Path) -> int:
    counting = Interrupted(lambda: None, -1)
    read_repository(counting, str(folder))  # type: ignore[arg-type]
    return counting.asked


def reopened(folder: Path) -> Growing:
    return Growing(icechunk.Repository.open(storage(folder)), random.Random(1), 1, count=1_000)


def newest(world: Growing) -> datetime:
    """Returns when the newest snapshot of the main branch was written."""
    moments: list[datetime] = [each.written_at for each in world.repo.ancestry(branch="main")]
    return max(moments)


CHANGES: dict[str, Callable[[Growing], None]] = {
    "expiry": lambda world: world.repo.expire_snapshots(
        max(each.written_at for each in world.repo.ancestry(branch="main"))
    ),
    "commit": Growing.commit,
    "reset": Growing.reset,
    "new tag": Growing.new_tag,
    "branch dropped": Growing.drop_branch,
}


@pytest.mark.parametrize("what", CHANGES)
def test_whenever_it_changes_it_is_read_as_before_or_as_after(small: Path, tmp_path: Path, what: str) -> None:
    for before in range(0, requests(small) + 1, by_lane(9, 5, 1)):
        folder = copied(small, tmp_path, f"r{before}")
        earlier = read_repository(STORE, str(folder))
        store = Interrupted(lambda at=folder: CHANGES[what](reopened(at)), before)
        found = read_repository(store, str(folder))  # type: ignore[arg-type]
        later = read_repository(STORE, str(folder))
        assert same(found, earlier) or same(found, later)
        shutil.rmtree(folder)


def test_no_moment_of_an_expiry_of_several_branches_is_a_mixture(tmp_path: Path) -> None:
    """An expiry writes the oldest snapshot that stays of each branch anew: three objects, one after the other."""
    origin = tmp_path / "origin"
    world = Growing(made(storage(origin), 1), random.Random(4), 1)
    for branch in ("main", "develop", "test"):
        if branch != "main":
            world.repo.create_branch(branch, world.repo.lookup_branch("main"))
        for _ in range(2):
            world.save(world.repo.writable_session(branch))
    for branch in ("main", "develop", "test"):
        world.save(world.repo.writable_session(branch))
    cutoff = world.repo.lookup_snapshot(world.written[-3]).written_at
    earlier, total = read_repository(STORE, str(origin)), requests(origin)
    edited = set()
    for before in range(total + 1):
        folder = copied(origin, tmp_path, f"r{before}")
        store = Interrupted(lambda at=folder: reopened(at).repo.expire_snapshots(cutoff), before)
        found = read_repository(store, str(folder))  # type: ignore[arg-type]
        later = read_repository(STORE, str(folder))
        assert same(found, earlier) or same(found, later)
        edited |= {name for name, each in later.snapshots.items() if each != earlier.snapshots[name]}
        shutil.rmtree(folder)
    assert len(edited) == 3


def same(one: IcechunkRepository, other: IcechunkRepository) -> bool:
    return (one.branches, one.tags, one.deleted_tags, one.snapshots) == (
        other.branches,
        other.tags,
        other.deleted_tags,
        other.snapshots,
    )


def test_one_that_never_stands_still_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    world = grown(storage(folder), 3, 1, steps=3)
    store = Interrupted(lambda: world.repo.create_branch(world.name("b"), world.any_snapshot()), None)
    with pytest.raises(UnreadableMetadata, match="faster than it can be read"):
        read_repository(store, str(folder))  # type: ignore[arg-type]


def test_the_in_place_edit_of_an_expiry_is_seen_though_refs_stay(tmp_path: Path) -> None:
    """The edit changes no ref: only what the store says of the snapshot tells of it."""
    folder = tmp_path / "r"
    world = grown(storage(folder), 5, 1, steps=12)
    earlier = read_repository(STORE, str(folder))
    CHANGES["expiry"](world)
    later = read_repository(STORE, str(folder))
    assert later.branches == earlier.branches
    assert later.snapshots != earlier.snapshots


def test_an_upgrade_in_between_is_seen(recorded: list[Path], small: Path, tmp_path: Path) -> None:
    folder = copied(small, tmp_path, "r")
    store = Interrupted(lambda: upgraded(folder, recorded[0]), requests(small) // 2)
    found = read_repository(store, str(folder))  # type: ignore[arg-type]
    assert found.spec == 2


def upgraded(folder: Path, other: Path) -> None:
    shutil.rmtree(folder / "refs")
    shutil.copy(other / "repo", folder / "repo")


def test_refs_of_version_1_beside_a_repo_must_be_known_to_it(recorded: list[Path], tmp_path: Path) -> None:
    folder = copied(recorded[0], tmp_path, "r")
    known = read_repository(STORE, str(folder))
    ref = folder / "refs" / "branch.main" / "ref.json"
    ref.parent.mkdir(parents=True)
    ref.write_text(f'{{"snapshot":"{known.branches["main"]}"}}')
    assert same(read_repository(STORE, str(folder)), known)
    ref.write_text('{"snapshot":"0000000000000000000G"}')
    with pytest.raises(UnsupportedFormat, match="there are two histories"):
        read_repository(STORE, str(folder))


def test_what_no_ref_leads_to_may_be_damaged(small: Path, tmp_path: Path) -> None:
    folder = copied(small, tmp_path, "r")
    (folder / "snapshots" / "0000000000000000000G").write_bytes(b"a writer that was killed")
    (folder / "snapshots" / "notes.txt").write_bytes(b"")
    assert same(read_repository(STORE, str(folder)), read_repository(STORE, str(small)))


def test_a_missing_or_damaged_ancestor_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    world = Growing(made(storage(folder), 1), random.Random(2), 1)
    for _ in range(3):
        world.commit()
    ancestor = list(read_repository(STORE, str(folder)).ancestry(world.repo.lookup_branch("main")))[2]
    place = folder / "snapshots" / ancestor.id
    data = place.read_bytes()
    place.write_bytes(data[:-1])
    with pytest.raises(UnreadableMetadata, match=f"snapshot is damaged: .*{ancestor.id}"):
        read_repository(STORE, str(folder))
    place.unlink()
    with pytest.raises(UnreadableMetadata, match=f"snapshot is missing: .*{ancestor.id}"):
        read_repository(STORE, str(folder))


def test_a_snapshot_that_is_its_own_ancestor_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    world = Growing(made(storage(folder), 1), random.Random(2), 1)
    world.commit()
    world.commit()
    tip, parent, *_ = read_repository(STORE, str(folder)).ancestry(world.repo.lookup_branch("main"))
    place = folder / "snapshots" / parent.id
    data = place.read_bytes()
    first = id_of("1CECHNKREP0F1RSTCMT0")
    assert body_of(data).count(first) == 1
    place.write_bytes(packed(data, body_of(data).replace(first, id_of(tip.id))))
    with pytest.raises(UnreadableMetadata, match="it is its own ancestor"):
        read_repository(STORE, str(folder))


def id_of(name: str) -> bytes:
    found, known = ids.ids_of(np.frombuffer(name.encode(), np.uint8).reshape(1, -1))
    assert known.all()
    return found.tobytes()
