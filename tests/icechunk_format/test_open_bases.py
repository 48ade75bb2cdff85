"""What sessions need that flushed and have no ref yet, or that go on from a snapshot which expired meanwhile."""

from __future__ import annotations

from functools import partial

import icechunk
import pytest

from firnline.model.times import DAY_MS, HOUR_MS
from firnline.ops.runs.plan import SHORTEST_GRACE_MS
from firnline.plans.stages import AwaitGrace

from .growing import LIBRARY
from .open_writing import (
    COMMIT,
    GRACE,
    HISTORY,
    LATER,
    OpenWriter,
    Scene,
    arrays,
    commit,
    flush,
    is_version_2,
    objects,
    opened,
    outcome_of,
)


def flushed_before_others(scene: Scene) -> tuple[OpenWriter, str]:
    writer = OpenWriter(scene.folder)
    writer.run(range(COMMIT))
    flushed = flush(writer)
    for value in range(2):
        commit(scene.folder, 6, 50 + value)
    return writer, flushed


def test_an_expiry_leaves_what_was_flushed_before_others_committed(scene: Scene) -> None:
    """Version 2 lists it, older than what the expiry takes: what the session wrote is as needed as in version 1."""
    writer, flushed = flushed_before_others(scene)
    for _ in range(2):  # the second finds nothing of it, either
        scene.plan()
        scene.go_on()
        scene.go_on()
    assert writer.own <= objects(scene.folder)
    if is_version_2(scene):  # in version 1 its line ends at what it was opened on, which nothing lists any more
        opened(scene.folder).create_branch("mine", flushed)
        assert arrays(scene.folder, "mine")["y0"] == writer.values["y0"]
    scene.is_sound()


def test_what_was_flushed_long_ago_expires(scene: Scene) -> None:
    """Who made no ref for longer than a write may take is gone: the test above can fail."""
    writer, _ = flushed_before_others(scene)
    scene.clock.advance(4 * DAY_MS)
    scene.plan()
    scene.go_on()
    scene.go_on()
    assert is_version_2(scene) == bool(writer.own - objects(scene.folder))


def test_a_plan_tells_the_bytes_of_a_line_without_a_ref(scene: Scene) -> None:
    """Of two commits of a branch that is gone the first expires: its transaction log stays for the second."""
    opened(scene.folder).create_branch("side", opened(scene.folder).lookup_branch("main"))
    for value, branch in enumerate(("side", "main", "side", "main", "main")):
        commit(scene.folder, 6, 50 + value, branch)
    opened(scene.folder).delete_branch("side")
    scene.clock.advance(4 * DAY_MS)
    plan = scene.process().plan(scene.location, older_than=LATER, retain_last=3, blast_radius=1.0).plan
    sizes = {path: path.stat().st_size for path in objects(scene.folder)}
    scene.plan(retain_last=3)
    scene.go_on()
    scene.go_on()
    gone = sizes.keys() - objects(scene.folder)
    assert (len(gone), sum(sizes[each] for each in gone)) == (plan.victims.all.files, plan.victims.all.bytes)
    assert len(gone) > HISTORY


@pytest.mark.skipif(LIBRARY < (2, 0), reason="before version 2 the library refuses the commit")
def test_a_session_that_moves_chunks_of_what_it_was_opened_on(scene: Scene) -> None:
    """Nobody else needs the chunk any more. Without a word of the operator a purge waits for the session."""
    session = opened(scene.folder).writable_session("main")
    session.reindex_array("/x", lambda at: (7,) if at[0] == 0 else None)
    for value in range(2):
        commit(scene.folder, 0, 60 + value)
    process = scene.process()
    process.expire(scene.location, older_than=LATER, retain_last=1, blast_radius=1.0)
    for waited_ms in (2 * DAY_MS, 3 * DAY_MS - HOUR_MS):  # the time to undo; nearly all of longest-write
        scene.clock.advance(waited_ms)
        (ended,) = process.resume(scene.location)
        assert ended.state == "committed"
    is_committed = not outcome_of(partial(session.commit, "moved", rebase_with=icechunk.ConflictDetector()))
    scene.clock.advance(2 * HOUR_MS)
    (ended,) = process.resume(scene.location)
    assert ended.state == "done"
    assert is_committed == is_version_2(scene)
    assert arrays(scene.folder)["x"][70:] == [HISTORY if is_committed else 0] * 10
    scene.is_sound()


def test_a_grace_that_is_shorter_than_sessions_is_told(scene: Scene) -> None:
    asked = {"older_than": LATER, "retain_last": 1, "blast_radius": 1.0}
    short, usual = (scene.process().plan(scene.location, **asked, **said).plan for said in ({"grace": GRACE}, {}))
    assert "longest-write" in str(short.notes)
    assert "longest-write" not in str(usual.notes)


def test_a_grace_that_covers_sessions_covers_them_after_the_commit(scene: Scene) -> None:
    """Half of four days lies before the commit; a session of three days may have been opened just before it."""
    asked = {"older_than": LATER, "retain_last": 1, "blast_radius": 1.0}
    plan = scene.process().plan(scene.location, **asked, grace="4d").plan
    (after,) = (each.grace_ms for each in plan.stages if isinstance(each, AwaitGrace))
    assert after == 3 * DAY_MS
    assert "longest-write" not in str(plan.notes)


def test_without_grace_a_tag_on_its_way_still_finds_its_files(scene: Scene) -> None:
    asked = {"older_than": LATER, "retain_last": 1, "blast_radius": 1.0}
    plan = scene.process().plan(scene.location, **asked, grace="0s").plan
    (after,) = (each.grace_ms for each in plan.stages if isinstance(each, AwaitGrace))
    assert after == SHORTEST_GRACE_MS
