"""Markdown as the tests need it: fenced blocks, links, headings and the anchors that they make."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GUIDES = sorted((DOCS / "guides").glob("*.md"))
EVERY_PAGE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def blocks(page: Path, language: str) -> list[str]:
    """Returns the fenced blocks of a language, in order."""
    return [body for said, body in _FENCED.findall(page.read_text()) if said == language]


def links(page: Path) -> list[str]:
    """Returns where the page links to inside the repository; code is no link."""
    text = re.sub(r"`[^`\n]*`", "", _FENCED.sub("", page.read_text()))
    return [link for link in _LINK.findall(text) if "://" not in link]


def inline_code(page: Path) -> list[str]:
    """Returns what stands in single backticks, in order; a line may end inside."""
    return [code.replace("\n", " ") for code in re.findall(r"`([^`]+)`", _FENCED.sub("", page.read_text()))]


def headings(page: Path) -> list[str]:
    return _HEADING.findall(_FENCED.sub("", page.read_text()))


def anchors(page: Path) -> set[str]:
    """Returns the anchors that the headings make: lower case, blanks as dashes, no other signs."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings(page)}


def table_rows(page: Path) -> list[list[str]]:
    """Returns the cells of every row of every table."""
    rows = re.findall(r"^\|(.+)\|$", page.read_text(), re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)] for row in rows]
