"""What readers make of the hint at the newest snapshot. Firnline believes no hint; Paimon's own Java does."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from firnline.formats.paimon import names
from firnline.formats.paimon.differences import number_of_snapshot
from firnline.formats.paimon.folder import Files

_NUMBER = re.compile(r"[+-]?\d{1,1000}")


def latest_hint(branch: str) -> str:
    """Returns the hint that names the newest snapshot of a branch."""
    return f"{names.branch_folder(branch)}snapshot/LATEST"


def is_latest_hint(path: str) -> bool:
    return path == latest_hint(names.split_branch(path)[0])


def misleading_hints(files: Files) -> Iterator[tuple[str, str]]:
    """Yields each hint from which Java does not come to the newest snapshot of its branch, and where it comes to."""
    for path in sorted(filter(is_latest_hint, files)):
        branch = names.split_branch(path)[0]
        numbers = {number for each in files if (number := number_of_snapshot(each, branch)) is not None}
        believed = _believed(files[path], numbers)
        if believed is not None and believed != max(numbers, default=None):
            newest = f"the newest is {max(numbers)}" if numbers else "there is none"
            yield path, f"Java takes snapshot {believed} for the newest, but {newest}"


def _believed(text: str, numbers: Collection[int]) -> int | None:
    """Returns the number that Java takes for the newest because the hint says so; None where it looks for itself.

    It joins the lines, and only looks whether the number after that one is there: not whether that one itself is.
    """
    said = "".join(text.splitlines())
    number = int(said) if _NUMBER.fullmatch(said) else 0
    return number if 0 < number <= names.LARGEST and number + 1 not in numbers else None
