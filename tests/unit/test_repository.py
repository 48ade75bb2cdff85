"""Promises of the repository itself: a lock without hosts, no traces of a machine, a light command line."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MADE_HERE = {".git", ".venv", ".demo", ".cache", "__pycache__", ".hypothesis", ".mypy_cache", ".ruff_cache"}
HEAVY = {"pyspark", "pyarrow", "numba", "obstore", "boto3", "sqlalchemy", "pyiceberg", "pandas"}

REGISTRY_HOSTS = re.compile(r"pythonhosted|pypi\.org|repo1?\.maven|https://[^/\s]*:[^/\s]*@")
LOCKED = re.compile(r"[a-z0-9][a-z0-9.-]*==[0-9][A-Za-z0-9.+]*( ; python_full_version [<>=]+ '[0-9.]+')?")
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:home|Users|root|work)/\w")


def tracked_files() -> list[Path]:
    """What git tracks; in a copy without git, every file that no tool made."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and not MADE_HERE & set(path.parts)]


def lines_of(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except UnicodeDecodeError:
        return []


def found(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked_files()
        if path != Path(__file__).resolve()
        for number, line in enumerate(lines_of(path), start=1)
        if pattern.search(line)
    ]


def test_the_lock_holds_one_name_and_version_per_line_and_nothing_else() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    assert [line for line in lines if not LOCKED.fullmatch(line)] == []
    assert lines == sorted(lines)
    unmarked = [line for line in lines if ";" not in line]
    assert len({line.partition("==")[0] for line in unmarked}) == len(unmarked)


def test_the_lock_has_two_versions_of_a_package_only_for_two_versions_of_python() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    versions: dict[str, list[str]] = {}
    for line in lines:
        versions.setdefault(line.partition("==")[0], []).append(line.partition(" ; ")[2])
    several = {name: sorted(markers) for name, markers in versions.items() if len(markers) > 1}
    assert "icechunk" in several
    assert {name: found for name, found in several.items() if not opposite(*found)} == {}


def opposite(*markers: str) -> bool:
    """Tells whether of two markers exactly one holds for every version of Python."""
    if len(markers) != 2:
        return False
    below, above = markers
    return below.replace("<", ">=") == above and "<" in below


def test_the_lock_covers_every_direct_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = [each for some in project["project"]["optional-dependencies"].values() for each in some]
    names = required(project["project"]["dependencies"] + extras + project["dependency-groups"]["dev"])
    locked = {line.partition("==")[0] for line in (ROOT / "requirements.lock").read_text().splitlines()}
    assert names - locked == {"firnline"}  # one extra stands for all others


def test_the_extra_testing_declares_what_contracts_and_strategies_import() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = required(project["dependencies"] + project["optional-dependencies"]["testing"])
    owners = packages_distributions()
    modules = {name for path in (ROOT / "src/firnline/testing").rglob("*.py") for name in imported(path)}
    wanted = {name: {plain(each) for each in owners[name]} for name in modules if name in owners and name != "firnline"}
    assert {"fastavro", "hypothesis", "pytest"} <= wanted.keys()
    assert {name for name, packages in wanted.items() if not packages & declared} == set()


def required(requirements: list[str]) -> set[str]:
    return {plain(re.split(r"[^A-Za-z0-9.-]", each)[0]) for each in requirements}


def plain(package: str) -> str:
    return package.lower().replace(".", "-").replace("_", "-")


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports, also inside its functions."""
    every = list(ast.walk(ast.parse(path.read_text())))
    names = {alias.name for each in every if isinstance(each, ast.Import) for alias in each.names}
    names |= {each.module for each in every if isinstance(each, ast.ImportFrom) and each.module and not each.level}
    return {name.partition(".")[0] for name in names}


def test_no_tracked_file_names_a_package_registry() -> None:
    assert found(REGISTRY_HOSTS) == []


def test_no_tracked_file_names_a_path_of_one_machine() -> None:
    assert found(MACHINE_PATHS) == []


@pytest.mark.parametrize(
    "script", [".ci/run", "scripts/setup.sh", "scripts/java.sh", "scripts/lock.sh", "scripts/services.sh"]
)
def test_scripts_can_be_run_and_parse(script: str) -> None:
    path = ROOT / script
    assert path.stat().st_mode & 0o111
    shell = "bash" if script == ".ci/run" else "sh"
    subprocess.run([shell, "-n", path], check=True)


def test_make_help_names_every_target_that_a_person_calls() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = set(re.findall(r"make ([a-z-]+)", shown))
    assert targets >= {"setup", "demo", "unit", "test", "test-full", "check", "bench", "clean"}


def test_help_imports_no_heavy_library() -> None:
    runner = (
        "import sys, json\n"
        "from firnline.cli import main\n"
        "sys.argv = ['firnline', '--help']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as ended:\n"
        "    assert not ended.code, ended.code\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})), file=sys.stderr)\n"
    )
    ended = subprocess.run([sys.executable, "-c", runner], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "plan" in ended.stdout
    assert set(json.loads(ended.stderr.splitlines()[-1])) & HEAVY == set()
