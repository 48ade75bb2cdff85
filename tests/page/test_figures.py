"""The page tells the truth: what it shows is what the same command says with --json."""

from __future__ import annotations

import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from firnline.ops.tiers.whereabouts import monthly
from firnline.plans.pages import number, size
from firnline.testing.tables import SmallTable

from .conftest import EVIL, TABLE, OpenPage, said


class Words(HTMLParser):
    """The texts of a page, one by one, and its elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.names: list[str] = []
        self.feed(html)

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)

    def figure(self, name: str) -> str:
        """Returns the headline figure of a name."""
        return next(text for text in self.texts[self.texts.index(name) + 1 :] if text)


def without_now(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in facts.items() if name not in ("now", "made_at", "age_s")}


def test_the_tables_and_their_sums(page: OpenPage, capsys: pytest.CaptureFixture[str]) -> None:
    facts = said(capsys, "plan", "--all")
    mine = page.facts("/api/tables")
    assert mine["sums"] == facts["sums"]
    (row,), (one,) = mine["tables"], facts["tables"]
    assert row["victims"] == {name: one["victims"][name] for name in ("files", "bytes")}
    assert row["kept"] == {name: one["kept"][name] for name in ("files", "bytes")}
    assert (row["expire"], row["policy"], row["format"]) == (len(one["expire"]), one["policy"], one["format"])
    words = Words(page.get("/").text)
    assert words.figure("would expire") == number(facts["sums"]["expire"])
    assert words.figure("bytes to free") == size(facts["sums"]["victims"]["bytes"])
    assert TABLE in words.texts


def written_by_pyiceberg(name: str) -> int:
    """Returns how many bytes the data files of a new table have, made by a writer that notes them."""
    catalog = SqlCatalog("lake", uri=f"sqlite:///{Path.cwd()}/catalog.db", warehouse=f"file://{Path.cwd()}")
    catalog.create_namespace_if_not_exists("ns")
    rows = pa.table({"id": pa.array([1, 2, 3])})
    made = catalog.create_table(f"ns.{name}", rows.schema)
    made.append(rows)
    made.append(rows)
    catalog.close()
    return sum(each.stat().st_size for each in Path.cwd().glob(f"**/{name}/data/*.parquet"))


def test_every_table_has_its_size_also_where_nothing_expires(
    page: OpenPage, capsys: pytest.CaptureFixture[str]
) -> None:
    large = written_by_pyiceberg("sized")
    page.index.look()
    facts, mine = said(capsys, "plan", "--all"), page.facts("/api/tables")
    assert mine["sums"] == facts["sums"]
    assert facts["sums"]["live"] == {"files": 2, "bytes": large, "unknown": 1}, "a summary may leave it out"
    versions = [each["metadata_versions"]["versions"] for each in facts["tables"]]
    there = sum(each.stat().st_size for each in Path.cwd().glob("**/*.metadata.json"))
    assert facts["sums"]["metadata_versions"] == {"versions": sum(versions), "bytes": there, "unsized": 0}
    rows = {each["table"]: each for each in mine["tables"]}
    for each in facts["tables"]:
        row = rows[each["table"]]
        assert (row["live"], row["metadata_versions"]) == (each["live"], each["metadata_versions"])
    assert rows["lake.ns.sized"]["live"] == {"files": 2, "bytes": large}
    assert (rows["lake.ns.sized"]["expire"], rows[TABLE]["live"]) == (0, None)
    shown = Words(page.get("/").text)
    assert shown.figure("live bytes") == size(large)
    assert {"unknown", size(large)} <= set(shown.texts)
    assert said(capsys, "graph", "lake.ns.sized")["live"] == {"files": 2, "bytes": large}
    assert page.facts("/api/graph", name="lake.ns.sized")["live"] == {"files": 2, "bytes": large}
    assert Words(page.get("/table", params={"name": "lake.ns.sized"}).text).figure("live bytes") == size(large)
    assert Words(page.get("/table", params={"name": TABLE}).text).figure("live bytes") == "unknown"


def test_a_table_is_what_its_commands_say(page: OpenPage, capsys: pytest.CaptureFixture[str]) -> None:
    mine = page.facts("/api/table", name=TABLE)
    assert without_now(mine["graph"]) == without_now(said(capsys, "graph", TABLE))
    assert without_now(page.facts("/api/graph", name=TABLE)) == without_now(said(capsys, "graph", TABLE))
    assert without_now(page.facts("/api/plan", name=TABLE)) == without_now(said(capsys, "plan", TABLE))
    for part, command in (("policy", ["policy", "show"]), ("history", ["history"])):
        assert mine[part] == said(capsys, *command, TABLE), part
    assert page.facts("/api/tiers", name=TABLE) == said(capsys, "tiers", TABLE)
    assert mine["holds"] == said(capsys, "hold", "list", TABLE)
    assert mine["runs"] == said(capsys, "runs", TABLE)
    assert mine["problems"] == {}
    report = said(capsys, "report", TABLE)
    assert without_now({**report, "plan": None, "tiers": None, "graph": None}) == without_now({**mine, "graph": None})
    plan = Words(page.get("/plan", params={"name": TABLE}).text)
    facts = said(capsys, "plan", TABLE)
    assert plan.figure("keep") == number(len(facts["keep"]))
    assert plan.figure("files to free") == number(facts["victims"]["files"])
    assert plan.figure("bytes to free") == size(facts["victims"]["bytes"])


def test_what_tiers_cost_stands_above_the_tables(page: OpenPage, capsys: pytest.CaptureFixture[str]) -> None:
    here = Path.cwd()
    tiers = f"archive: cold\ntiers:\n  cold:\n    root: file://{here}/cold\ncatalogs:\n  cold: {{archive: off}}\n"
    Path("firnline.yaml").write_text(f"audit: {here}/log\nblast-radius: 100%\n{tiers}")
    more = f"  cold:\n    type: sql\n    uri: sqlite:///{here}/cold.db\n    warehouse: file://{here}/cold\n"
    Path(".pyiceberg.yaml").write_text(Path(".pyiceberg.yaml").read_text() + more)
    page.index.look()
    assert page.facts("/api/tables")["tiers"] == [], "nothing was handed over yet"
    said(capsys, "expire", TABLE, "--yes")
    page.index.look()
    facts, mine = said(capsys, "tiers", TABLE), page.facts("/api/tables")
    assert [each["tier"] for each in mine["tiers"]] == ["live", "cold"]
    for found, one in zip(mine["tiers"], facts["tiers"], strict=True):
        assert found == {"tables": 1, **{name: one[name] for name in ("tier", "files", "bytes", "monthly")}}
        assert f"{one['tier']} {size(one['bytes'])} of 1, {monthly(one['monthly'])} a month" in page.get("/").text
    assert page.index.trouble == []


def test_why_is_what_the_command_says(page: OpenPage, table: SmallTable, capsys: pytest.CaptureFixture[str]) -> None:
    file = table.live()[0]
    for what in (file, "main", EVIL):
        facts = said(capsys, "why", TABLE, what)
        assert page.facts("/api/why", table=TABLE, what=what) == facts
        shown = page.get("/why", params={"table": TABLE, "what": what}).text
        assert "read 0 s ago" in shown
        for each in facts.get("needed_by", [facts]):
            assert each["snapshot"] in shown
    assert page.facts("/api/why", what=file)["table"] == TABLE, "found by its folder"


def test_a_run_from_plan_to_savings(page: OpenPage, capsys: pytest.CaptureFixture[str]) -> None:
    run = page.call("/api/do/plan", table=TABLE, by="ann").json()["run"]
    assert said(capsys, "runs", "show", run)["state"] == "planned"
    approved = page.call("/api/do/approve", run=run, by="ann", note="looked at it")
    assert approved.status_code == 200, approved.text
    deadline = time.monotonic() + 30
    while page.facts("/api/run", id=run)["run"]["state"] in ("planned", "committing") and time.monotonic() < deadline:
        time.sleep(0.1)
    mine, facts = page.facts("/api/run", id=run), said(capsys, "runs", "show", run)
    assert mine["run"] == facts
    assert facts["state"] == "committed"
    assert facts["approval"]["by"] == "ann"
    assert without_now(mine)["plan"] == without_now(said(capsys, "report", run))["plan"]
    words = Words(page.get("/run", params={"id": run}).text)
    assert words.figure("state") == "committed"
    assert words.figure("files") == number(facts["planned"]["victims"]["files"])
    audit = [each["news"] for each in said(capsys, "audit", "show")["entries"]]
    assert [(each["to"], each["words"].get("by")) for each in audit if each["kind"] == "page"] == [
        ("plan", "ann"), ("approve", "ann"),
    ]  # fmt: skip
    page.index.look()
    assert page.facts("/api/runs") == said(capsys, "runs", "--all")
    assert page.facts("/api/savings") == {"files": 0, "bytes": 0, "days": []}


def test_savings_are_what_runs_deleted(page: OpenPage, capsys: pytest.CaptureFixture[str]) -> None:
    ended = said(capsys, "expire", TABLE, "--grace", "0s", "--yes")
    page.index.look()
    deleted = ended["outcomes"]["deleted"]
    mine = page.facts("/api/savings")
    assert {name: mine[name] for name in ("files", "bytes")} == deleted
    (day,) = mine["days"]
    assert day == {"day": ended["events"][-1]["at"][:10], "runs": 1, **deleted}
    words = Words(page.get("/savings").text)
    assert words.figure("bytes deleted") == size(deleted["bytes"])
    reasons = page.facts("/api/run", id=ended["run"])["by_reason"]
    assert sum(each["files"] for each in reasons) == sum(each["files"] for each in ended["outcomes"].values())
