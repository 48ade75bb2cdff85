"""Every link between the pages leads somewhere, and every page can be reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from .pages import DOCS, EVERY_PAGE, ROOT, anchors, links


def target(page: Path, link: str) -> tuple[Path, str]:
    """Returns the file that a link means, and the anchor in it."""
    name, _, anchor = link.partition("#")
    return (page.parent / name).resolve() if name else page, anchor


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        file, anchor = target(page, link)
        assert file.is_file(), f"{page.name} links to {link}, which does not exist"
        assert not anchor or anchor in anchors(file), f"{page.name} links to {link}, which has no such heading"


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_page_can_be_reached_from_the_readme(page: Path) -> None:
    assert page.resolve() in {target(ROOT / "README.md", link)[0] for link in links(ROOT / "README.md")}
