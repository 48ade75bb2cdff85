"""What is told of a run that hands snapshots over to a tier."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from firnline.app.places import now_ms
from firnline.ports.observing.news import News
from tests.tiers.lakes import tiered_lake


@dataclass
class Listener:
    """Keeps the news that it hears."""

    heard: list[News] = field(default_factory=list)

    def hear(self, news: News) -> None:
        self.heard.append(news)


def test_the_news_of_a_hand_over_say_how_much_was_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tiered_lake(tmp_path, monkeypatch) as lake:
        lake.create("t")
        for number in range(3):
            lake.append("t", number)
        firnline, listener = lake.firnline(), Listener()
        firnline.places.watch = firnline.places.watch.joined(listener)
        firnline.expire("lake.db.t", older_than=now_ms(), retain_last=1, grace="0s")
    (told,) = [each for each in listener.heard if each.state == "archived"]
    assert told.figures["snapshots"] == 2
    assert told.figures["copied_files"] > 2
    assert told.figures["copied_bytes"] > 1_000
    assert told.figures["present_files"] == 0
