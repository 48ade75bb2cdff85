"""A user's script is checked as strictly as our own code: options have types, results have types, and what is misspelt
is found before it runs; and every command has its method.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

import firnline
from firnline.cli.main import app
from firnline.lake import Lake
from firnline.web.facts.tables import table_report
from firnline.web.serving.starting import serve_page

SCRIPT = """
from datetime import datetime, timedelta, timezone

import firnline
from firnline import KeepRules, Lake, RunOptions, TableName


def nightly(lake: Lake, rules: KeepRules) -> int:
    freed = 0
    for table in lake.tables():
        view = lake.plan(table, keep=rules, older_than=None)
        freed += view.plan.victims.all.bytes
    return freed


def named(lake: Lake) -> list[TableName]:
    return lake.tables("lake")


lake = firnline.open()
nightly(lake, {"daily": 3, "within": timedelta(days=7), "tags": ["audit-*"], "yearly": "all"})
lake.plan("lake.sales.orders", older_than=datetime(2026, 8, 22, tzinfo=timezone.utc), retain_last=2)
asked: RunOptions = {"older_than": timedelta(days=30), "grace": timedelta(hours=2)}
ran = lake.expire("lake.sales.orders", **asked)
state: str = ran.state if not hasattr(ran, "planned") else ""
timeline, trouble = lake.history("lake.sales.orders", since=datetime.now(timezone.utc))
days: int = len(timeline.days())
plan, run = lake.orphans("lake.sales.orders", older_than=timedelta(days=7), dry_run=True)
listed: int = plan.listed.files
kept: bool = lake.why("lake.sales.orders", "main", keep={"last": 1}).kept
sound: bool = lake.check("lake.sales.orders").sound
page: str = lake.runs("lake.sales.orders")._repr_html_()
"""
MISTAKES = {
    'lake.plan("a.b.c", older_then="7d")': "older_then",
    'lake.plan("a.b.c", keep={"daily": 3.5})': "float",
    'lake.plan("a.b.c", older_than=7.5)': "older_than",
    'lake.expire("a.b.c", grace=24)': "grace",
    'lake.orphans("a.b.c", dryrun=True)': "dryrun",
    'firnline.open(motor="spark")': "motor",
    "lake.plan(3)": "TableName",
    'faults: str = lake.check("a.b.c").sound': "bool",
}


def checked(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), "script.py"]
    return subprocess.run(mypy, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.full
def test_a_sound_script_passes_and_each_mistake_is_found_in_its_line(tmp_path: Path) -> None:
    assert (Path(firnline.__file__).parent / "py.typed").is_file()
    lines = "\n".join(MISTAKES)
    script = f"{SCRIPT}\n{lines}\n"
    said = checked(tmp_path, script).stdout
    first = script.splitlines().index(next(iter(MISTAKES))) + 1
    for number, (line, word) in enumerate(MISTAKES.items(), first):
        found = [each for each in said.splitlines() if each.startswith(f"script.py:{number}:") and ": error:" in each]
        assert any(word in each for each in found), f"{line}: {said}"
    assert f"Found {len(MISTAKES)} errors" in said, said


METHODS = {
    "tables": Lake.tables, "plan": Lake.plan, "graph": Lake.graph, "why": Lake.why,
    "expire": Lake.expire, "commit": Lake.commit,
    "approve": Lake.approve, "purge": Lake.purge, "undo": Lake.undo, "resume": Lake.resume, "runs": Lake.runs,
    "check": Lake.check, "history": Lake.history, "sql": Lake.sql, "orphans": Lake.orphans, "dropped": Lake.dropped,
    "adopt": Lake.adopt, "archive": Lake.archive, "restore": Lake.restore, "tiers": Lake.tiers, "erase": Lake.erasures,
    "iam": Lake.permissions, "doctor": Lake.doctor, "worker": firnline.open_worker,
    "report": table_report, "serve": serve_page,
    "policy show": Lake.policy, "policy check": Lake.check_policy,
    "policy schema": firnline.policy_schema,
    "tag add": Lake.tag, "tag list": Lake.tags, "tag remove": Lake.untag,
    "hold add": Lake.hold, "hold list": Lake.holds, "hold release": Lake.release, "branch drop": Lake.drop_branch,
    "audit show": Lake.audit, "audit verify": Lake.verify_audit,
}  # fmt: skip
"""Each command with what a program calls in its place."""


def commands() -> set[str]:
    group = typer.main.get_command(app)
    found = set()
    for name, command in group.commands.items():
        inner = getattr(command, "commands", {})
        found |= {f"{name} {each}" for each in inner} if inner else {name}
    return found


def test_every_command_has_its_method_and_the_guide_names_it() -> None:
    pointers = {each for each in commands() if each.startswith("pointers ")}
    assert commands() - pointers - {"help"} == METHODS.keys()
    assert Lake.pointers
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "python.md").read_text()
    missing = [each for each, method in METHODS.items() if f"| `{each}` |" not in guide]
    assert missing == []
