"""Files, classes and members that the pages name in backticks are there: a page outlives the code that it tells of."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from .pages import DOCS, ROOT, blocks, inline_code

PACKAGE = ROOT / "src" / "firnline"
CONTRIBUTING, LAYERS = ROOT / "CONTRIBUTING.md", DOCS / "design" / "001-layers.md"
PAGES = [*sorted((DOCS / "design").glob("*.md")), *sorted((DOCS / "concepts").glob("*.md")), CONTRIBUTING]
FOLDERS = [PACKAGE, *(ROOT / name for name in ("tests", "demo", "bench", "scripts", "formal"))]
FILES = [f"/{path.relative_to(ROOT).as_posix()}" for folder in FOLDERS for path in folder.rglob("*.py")]

_FILE = re.compile(r"(?<![\w*/.…-])[\w/-]+\.py\b")
_MEMBER = re.compile(r"\b([A-Z]\w*)\.([a-zA-Z_]\w*)")
_DOTTED = re.compile(r"((?:[a-z_]\w*\.)+)([A-Z]\w*)")


def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


MODULES = {path.relative_to(PACKAGE).as_posix(): syntax(path) for path in sorted(PACKAGE.rglob("*.py"))}
CLASSES: defaultdict[str, list[ast.ClassDef]] = defaultdict(list)
for _module in MODULES.values():
    for _each in ast.walk(_module):
        if isinstance(_each, ast.ClassDef):
            CLASSES[_each.name].append(_each)


def of_page(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def assigned(statement: ast.AST) -> Iterator[ast.expr]:
    """Yields what a statement gives a value or a type to."""
    if isinstance(statement, ast.Assign):
        yield from statement.targets
    elif isinstance(statement, ast.AnnAssign):
        yield statement.target


def own_members(each: ast.ClassDef) -> Iterator[str]:
    """Yields the names that a class itself gives: methods, fields, members of an enum, and what methods set on self."""
    for statement in each.body:
        if isinstance(statement, ast.FunctionDef):
            yield statement.name
        yield from (target.id for target in assigned(statement) if isinstance(target, ast.Name))
    for inner in ast.walk(each):
        for target in assigned(inner):
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                yield target.attr


def members(name: str) -> set[str]:
    """Returns the members of a class of the package, with those that it inherits from others of the package."""
    found: set[str] = set()
    for each in CLASSES.get(name, ()):
        found |= set(own_members(each))
        for base in each.bases:
            last = base.value if isinstance(base, ast.Subscript) else base
            inherited = last.attr if isinstance(last, ast.Attribute) else getattr(last, "id", "")
            found |= members(inherited) if inherited != name else set()
    return found


def top_names(module: ast.Module) -> set[str]:
    """Returns the names that a module defines or imports."""
    found = {each.name for each in module.body if isinstance(each, ast.ClassDef | ast.FunctionDef)}
    found |= {alias.asname or alias.name for each in ast.walk(module) if isinstance(each, ast.ImportFrom)
              for alias in each.names}  # fmt: skip
    return found | {target.id for each in module.body for target in assigned(each) if isinstance(target, ast.Name)}


def modules_named(dotted: str) -> list[ast.Module]:
    """Returns the modules of the package whose name ends like this: `ports.discard`, `discard`, `firnline.ports`."""
    ending = "/" + dotted.removeprefix("firnline.").replace(".", "/")
    return [
        module for path, module in MODULES.items() if f"/{path}".endswith((f"{ending}.py", f"{ending}/__init__.py"))
    ]


@pytest.mark.parametrize("page", PAGES, ids=of_page)
def test_every_file_is_there(page: Path) -> None:
    named = {name for code in inline_code(page) for name in _FILE.findall(code)}
    assert sorted(name for name in named if not any(path.endswith(f"/{name}") for path in FILES)) == []


@pytest.mark.parametrize("page", PAGES, ids=of_page)
def test_every_member_is_there(page: Path) -> None:
    named = {pair for code in inline_code(page) for pair in _MEMBER.findall(code)}
    assert sorted(f"{name}.{member}" for name, member in named if name in CLASSES and member not in members(name)) == []


@pytest.mark.parametrize("page", PAGES, ids=of_page)
def test_every_class_is_in_the_module_that_it_is_named_with(page: Path) -> None:
    named = [found for code in inline_code(page) for found in _DOTTED.findall(code)]
    wrong = [
        f"{dotted}{name}"
        for dotted, name in named
        if (modules := modules_named(dotted.rstrip("."))) and not any(name in top_names(each) for each in modules)
    ]
    assert wrong == []


@pytest.mark.parametrize("page", [CONTRIBUTING, LAYERS], ids=of_page)
def test_a_layout_has_every_part_of_the_package(page: Path) -> None:
    layout = next(block for language in ("", "text") for block in blocks(page, language) if "lake.py" in block)
    parts = {path.name for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    told = re.sub(r"[ ]{3,}[a-z].*$", "", layout, flags=re.MULTILINE)
    assert sorted(parts - {"__init__.py"} - set(re.findall(r"[\w.]+", told))) == []
