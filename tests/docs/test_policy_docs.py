"""What the pages on retention say is true: their examples run, and every key is documented."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from firnline.model.graph import Graph
from firnline.model.snapshots import Ref, RefKind, Snapshot
from firnline.model.times import DAY_MS
from firnline.policy.decide import decide
from firnline.policy.holds import parse_holds
from firnline.policy.inherit import effective
from firnline.policy.native import NativeRetention
from firnline.policy.parse import parse_policy
from firnline.policy.rules import RULE_NAMES
from firnline.policy.values import SETTINGS
from firnline.policy.why import explain_expired

DOCS = Path(__file__).parents[2] / "docs"
RETENTION = (DOCS / "concepts" / "retention.md").read_text()
REFERENCE = (DOCS / "reference" / "policy.md").read_text()
NOW_MS = round(datetime(2026, 8, 22, 12, tzinfo=UTC).timestamp() * 1000)
NATIVE = NativeRetention(5 * DAY_MS, 1)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


EXAMPLES = [*blocks(RETENTION, "yaml"), *blocks(REFERENCE, "yaml")]


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_is_a_policy(text: str) -> None:
    root = parse_policy(text)
    assert root.keep or root.settings


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 6


def example_rows() -> list[tuple[str, str]]:
    return re.findall(r"^\| (\d{4}-\d\d-\d\d \d\d:\d\d) \| (.*?) ?\|$", RETENTION, re.MULTILINE)


def example_graph() -> Graph:
    parent, found = None, []
    for name, _ in example_rows():
        time = datetime.fromisoformat(name).replace(tzinfo=UTC)
        found.append(Snapshot(name, parent, round(time.timestamp() * 1000)))
        parent = name
    return Graph(found)


def example_refs(names: list[str]) -> dict[str, Ref]:
    tag = Ref("audit-q2", RefKind.TAG, names[0])
    return {"main": Ref("main", RefKind.BRANCH, names[-1]), "audit-q2": tag}


def test_the_table_of_the_example_is_what_decide_says() -> None:
    rows = example_rows()
    refs = example_refs([name for name, _ in rows])
    policy = effective(parse_policy(blocks(RETENTION, "yaml")[0]), None, (), "t").policy
    decision = decide(example_graph(), refs, rows[-1][0], NATIVE, policy, now_ms=NOW_MS)
    said = {name: ", ".join(map(str, decision.kept.get(name, ()))) for name, _ in rows}
    assert said == dict(rows)


def test_the_words_about_an_expired_snapshot_are_what_why_says() -> None:
    names = [name for name, _ in example_rows()]
    policy = effective(parse_policy(blocks(RETENTION, "yaml")[0]), None, (), "t").policy
    gone = "2026-08-21 09:00"
    lines = explain_expired(gone, example_graph(), example_refs(names), names[-1], NATIVE, policy=policy, now_ms=NOW_MS)
    assert blocks(RETENTION, "text")[0].splitlines() == list(lines)


def test_the_hold_of_the_page_can_be_read() -> None:
    written = json.loads(blocks(RETENTION, "json")[0])
    (hold,) = parse_holds({key: json.dumps(value) for key, value in written.items()})
    assert (hold.name, hold.who, hold.why) == ("legal-7", "ann", "case 12")


@pytest.mark.parametrize("key", [*RULE_NAMES, *SETTINGS])
def test_every_key_has_its_row_in_the_reference(key: str) -> None:
    assert re.search(rf"^\| `{key}` \|", REFERENCE, re.MULTILINE)


def test_links_between_the_pages_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+\.md)", REFERENCE):
        assert (DOCS / "reference" / target).is_file()
