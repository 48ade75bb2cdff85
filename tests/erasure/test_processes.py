"""Several processes erase from one table at once: each file goes, no other row does, and no run is left over."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from firnline.ops.erasure.report import ErasurePlan
from tests.erasure.erasing import ASKED, erase, file_of, is_lying, mentions, without
from tests.neighbours.lakes import RealLake
from tests.tiers.lakes import rows_of

FIRNLINE = str(Path(sys.executable).with_name("firnline"))


def at_once(lake: RealLake, asked: Sequence[str]) -> list[tuple[int, str]]:
    """Returns the exit code and the words of one process per file, all started before any has ended."""
    lake.firnline()
    words = ["--case", "RIGHT-17", "--by", "A. Person", "--grace", "0s", "--yes", "--json"]
    started = [
        subprocess.Popen(
            [FIRNLINE, "erase", "lake.db.t", path, *words],
            cwd=lake.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for path in asked
    ]
    said = [each.communicate(timeout=120) for each in started]
    return [(each.returncode, out or err) for each, (out, err) in zip(started, said, strict=True)]


def test_a_file_that_another_run_has_yet_to_delete_is_no_leftover(plain: RealLake) -> None:
    path = file_of(plain, "t", 1)
    others: list[str] = []

    def meanwhile(plan: ErasurePlan) -> None:
        [theirs] = erase(plain, "t", path, grace="1h").tables
        assert theirs.run is not None
        others.append(theirs.run.id)

    [told] = plain.firnline().erasures.carry_out("lake.db.t", [path], ASKED, 0, meanwhile).tables
    assert told.run is not None
    assert ([told.run.id], told.left, told.waits) == (others, (), True)
    assert is_lying(path)


@pytest.mark.parametrize("values", [(1, 1, 1), (0, 1, 2)], ids=["the same file", "a file each"])
@pytest.mark.full
def test_all_of_them_go_and_nothing_else(plain: RealLake, values: tuple[int, ...]) -> None:
    before, files = rows_of(plain.table("t")), [file_of(plain, "t", value) for value in values]
    for code, told in at_once(plain, files):
        problem = {} if code == 0 else json.loads(told)["error"]
        assert code == 0 or problem["kind"] in ("lease-held", "table-moved"), (code, told)
        assert "Traceback" not in told
    for path in files:
        assert erase(plain, "t", path).is_done
    assert rows_of(plain.table("t")) == without(before, *values)
    for path in files:
        assert not is_lying(path)
        left = mentions(plain.folder / "warehouse", Path(path).name)
        assert [each for each in left if each.suffix != ".json"] == []
    assert plain.firnline().check("lake.db.t").sound
    assert all(each.run.is_finished for each in plain.firnline().runs("lake.db.t"))
