"""A lake outlives the Spark session in which its statements ran: in a notebook one is stopped and another started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

CONVERSATION = """
from pyspark.sql import SparkSession
from firnline.errors import UsageError
from firnline.lake import open_lake

def told(lake):
    return [row.n for answer in lake.sql("SELECT 7 AS n") for row in answer.collect()]

lake = open_lake()
assert told(lake) == [7]
SparkSession.getActiveSession().stop()
assert told(lake) == [7], "in a session of its own, which is started again"
handed = SparkSession.getActiveSession()
other = open_lake(session=handed)
assert told(other) == [7]
handed.stop()
for ask in (told, lambda lake: lake.places.engines.spark("t")):
    try:
        ask(other)
    except UsageError as refusal:
        print(refusal.message)
"""


@pytest.mark.full
def test_statements_go_on_in_a_new_session_and_one_that_was_handed_in_is_named(tmp_path: Path) -> None:
    """In a process of its own: this one's session is everyone's."""
    ended = subprocess.run(
        [sys.executable, "-c", CONVERSATION], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["the Spark session that was handed in was stopped"] * 2
