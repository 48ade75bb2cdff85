"""What is known of the lake outlives what cannot be read for a while, and not what is gone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from .conftest import TABLE, OpenPage, said


def test_runs_that_cannot_be_read_have_not_deleted_less(page: OpenPage, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "expire", TABLE, "--grace", "0s", "--yes")
    page.index.look()
    before, runs = page.facts("/api/savings"), page.facts("/api/runs")
    assert before["bytes"] > 0
    assert page.index.trouble == []
    kept = {each: each.read_bytes() for each in Path.cwd().glob("**/_firnline/**/plan.json")}
    assert kept
    for each in kept:
        each.write_text("{")
    page.index.look()
    assert page.facts("/api/savings") == before
    assert page.facts("/api/runs") == runs
    (trouble,) = page.index.trouble
    assert trouble.startswith(f"runs of {TABLE}: ")
    assert trouble in page.get("/").text.replace("&quot;", '"').replace("&#x27;", "'")
    for each, text in kept.items():
        each.write_bytes(text)
    page.index.look()
    assert page.index.trouble == []


def test_tables_of_a_catalog_that_is_away_stay_known(page: OpenPage) -> None:
    database = Path("catalog.db")
    row, text = page.index.rows[TABLE], database.read_bytes()
    database.write_bytes(b"this is no database" * 100)
    page.index.look()
    assert page.index.names == {TABLE}
    assert page.index.rows[TABLE] == row
    assert len(page.index.trouble) == 1
    assert page.index.trouble[0].startswith("lake: ")
    database.write_bytes(text)
    page.index.look()
    assert (page.index.trouble, set(page.index.rows)) == ([], {TABLE})


def test_a_table_that_is_gone_is_forgotten(page: OpenPage) -> None:
    metadata = Path.cwd() / "ns" / "events" / "metadata"
    for each in metadata.glob("*.json"):
        each.rename(each.with_suffix(".away"))
    page.index.look()
    assert page.index.rows[TABLE].error
    with sqlite3.connect("catalog.db") as database:
        database.execute("DELETE FROM iceberg_tables")
    database.close()
    page.index.look()
    assert (page.index.names, page.index.rows, page.index.runs) == (frozenset(), {}, {})
