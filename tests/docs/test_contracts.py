"""The import contracts refuse what they are there to refuse: shown on a copy of the package with one module more."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = Path(sys.executable).with_name("lint-imports")


def lint(folder: Path, module: str, text: str) -> subprocess.CompletedProcess[str]:
    """Returns what the linter says of the package with this module in it."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "src" / "firnline" / module).write_text(text)
    asked = [str(LINT), "--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    paths = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(asked, env=paths, cwd=folder, capture_output=True, text=True, check=False)


def test_a_module_that_imports_nothing_forbidden_is_accepted(tmp_path: Path) -> None:
    said = lint(tmp_path, "ops/newly_added.py", "from firnline.ports.stores import Read\n\nPORT = Read\n")
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("ops/newly_added.py", "firnline.ports.delete"),
        ("formats/newly_added.py", "firnline.ports.delete"),
        ("plans/newly_added.py", "firnline.ports.delete"),
        ("app/newly_added.py", "firnline.stores.delete"),
        ("catalogs/newly_added.py", "firnline.ports.retire"),
        ("ops/newly_added.py", "firnline.ops.runs.purge"),
        ("sql/newly_added.py", "firnline.stores.removers"),
    ],
)
def test_a_new_module_gets_no_power_to_delete(tmp_path: Path, module: str, imported: str) -> None:
    said = lint(tmp_path, module, f"import {imported}\n")
    assert said.returncode != 0
    assert f"-> {imported}" in said.stdout


@pytest.mark.parametrize("imported", ["demo.lake", "harness.servers"])
def test_a_contract_cannot_stand_on_what_does_not_ship(tmp_path: Path, imported: str) -> None:
    said = lint(tmp_path, "testing/newly_added.py", f"import {imported}\n")
    assert said.returncode != 0
    assert f"firnline.testing.newly_added -> {imported.partition('.')[0]}" in said.stdout
