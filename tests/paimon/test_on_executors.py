"""The second walk of a purge, where units take away what others name: on executors, with nothing opened here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from firnline.app.engines import Engines
from firnline.formats.paimon.walking.expand import PaimonExpand
from firnline.journal.lease import LeaseTimes
from firnline.model.files import File
from firnline.ports.expanding import Expanded, Together
from firnline.spark.session import session

from .small import Copy

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.full
def test_a_snapshot_that_came_back_is_spared_by_a_walk_on_executors(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollback writes an old snapshot's lists as the newest one: all that it needs is on the list of the run."""
    folder = Path(copy.table, "snapshot")
    old = (folder / "snapshot-1").read_text()
    run = copy.expire(grace="1h").run
    newest = max(int(each.name.removeprefix("snapshot-")) for each in folder.glob("snapshot-[0-9]*"))
    (folder / f"snapshot-{newest + 1}").write_text(old.replace('"id" : 1,', f'"id" : {newest + 1},'))

    def opened(self: PaimonExpand, units: Sequence[File], together: Together = map) -> Expanded:
        raise AssertionError(f"the driver opened {[each.key for each in units]}")

    monkeypatch.setattr(PaimonExpand, "__call__", opened)
    copy.clock.advance(2 * 3_600_000)
    process = copy.process()
    process.places.engines = Engines("spark", session())
    process.places.lease_times = LeaseTimes(skew_ms=0)  # Spark takes its time where others use the processor
    done = process.purge(str(run.id))
    assert done.state == "done"
    assert done.outcomes["spared"].files > 0
    assert not copy.missing()
