"""What is asked of the store does not grow with every tag that has an end, or consumer."""

from __future__ import annotations

import json
from pathlib import Path

from firnline.formats.paimon.table import PaimonFormat
from firnline.stores.objects import ObjectStores
from firnline.testing.faults import CountingFault
from firnline.testing.faulty import FaultyStore

from .small import Copy

MANY = 40


def _asked(copy: Copy) -> list[str]:
    """Returns the requests of one load of the table, by verb, without those that read a file."""
    counting = CountingFault()
    PaimonFormat(FaultyStore(ObjectStores(), counting)).load(copy.table, copy.table)
    return sorted(verb for verb, _ in counting.trace if verb != "get")


def test_many_tags_with_an_end_cost_one_request_more(copy: Copy) -> None:
    tags = Path(copy.table) / "tag"
    short = json.loads((tags / "tag-short").read_text())
    before = _asked(copy)
    for number in range(MANY):
        (tags / f"tag-of-{number}").write_text(json.dumps(short))
        consumers = Path(copy.table) / "consumer"
        consumers.mkdir(exist_ok=True)
        (consumers / f"consumer-{number}").write_text('{"nextSnapshot": 9}')
    assert len(_asked(copy)) <= len(before) + 2
