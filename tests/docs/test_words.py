"""One meaning per name, short functions, and plain words: what a newcomer reads without stumbling."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HARNESS = ROOT / "tests" / "harness"
MODULES = sorted(path for folder in (ROOT / "src", HARNESS, ROOT / "demo") for path in folder.rglob("*.py"))
LONGEST_FUNCTION, LONGEST_MODULE, CROWDED = 60, 400, 20
VAGUE = re.compile(r"\b(?:somebody|whoever)\b", re.IGNORECASE)


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    return (each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.FunctionDef))


def test_a_class_name_has_one_meaning() -> None:
    meanings: defaultdict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for each in ast.parse(path.read_text()).body:
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                meanings[each.name].append(place(path))
    assert {name: where for name, where in meanings.items() if len(where) > 1} == {}


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_a_module_is_short_and_plain(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LONGEST_MODULE
    assert [line for line in text.splitlines() if VAGUE.search(line)] == [] or HARNESS in path.parents
    assert [each.name for each in functions(path) if _length(each) > LONGEST_FUNCTION] == []


def _length(function: ast.FunctionDef) -> int:
    first = function.body[0]
    documented = ast.get_docstring(function) is not None and first.end_lineno is not None
    skipped = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - skipped


def test_no_folder_is_crowded() -> None:
    counts: defaultdict[str, int] = defaultdict(int)
    for path in MODULES:
        counts[place(path.parent)] += path.name != "__init__.py"
    assert {folder: count for folder, count in counts.items() if count > CROWDED} == {}


def test_what_returns_nothing_does_not_say_what_it_returns() -> None:
    wrong = [
        f"{place(path)}: {each.name}"
        for path in MODULES
        for each in functions(path)
        if isinstance(each.returns, ast.Constant) and each.returns.value is None
        if (ast.get_docstring(each) or "").startswith("Returns")
    ]
    assert wrong == []


def classes(folder: Path) -> Iterator[ast.ClassDef]:
    trees = (ast.parse(path.read_text()) for path in sorted(folder.rglob("*.py")))
    return (each for tree in trees for each in tree.body if isinstance(each, ast.ClassDef))


def test_no_contract_hides_a_test_of_another() -> None:
    """A class that keeps several contracts has the first one's test of a name, and the other one's never runs."""
    contracts = {
        each.name: {
            item.name for item in each.body if isinstance(item, ast.FunctionDef) and item.name.startswith("test_")
        }
        for each in classes(ROOT / "src" / "firnline" / "testing")
    }
    hidden: list[str] = []
    for each in classes(ROOT / "tests"):
        kept = [base.id for base in each.bases if isinstance(base, ast.Name) and base.id in contracts]
        named = Counter(name for base in kept for name in contracts[base])
        hidden += [f"{each.name}: {name}" for name, count in named.items() if count > 1]
    assert contracts
    assert hidden == []
