"""Two roads to one file: files of a walk on Spark that may be others than their names say.

Names are compared on executors as they are called. Where two of them may mean one file, that is not enough: such a
table is left to the engine that compares real names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.errors import PermanentStoreError, RefusedForSafety
from firnline.ports.engines import TableWalk, Territory
from firnline.spark.judged import FOLDERS_DDL, OTHERS, all_folders, may_be_local
from firnline.spark.survey import Sums
from firnline.walking.verdicts import KEPT, VERDICTS

_STAYING = (VERDICTS.index(KEPT), OTHERS)
"""Verdicts by which no file of a folder goes."""


def two_roads(files: DataFrame, walks: Sequence[TableWalk], sums: Sequence[Sums]) -> dict[int, RefusedForSafety]:
    """Returns the walks that cannot be judged here: two local folders of their files are one, one from which files may
    go only seems to be the table's own, or one has links to files.

    Only folders are looked at, each once; tables that have no local folder, or no victim, cost nothing.
    """
    due = [number for number, walk in enumerate(walks) if sums[number].has_victims and may_be_local(walk.territory)]
    looks = {number: _Roads(walks[number].territory) for number in due}
    found: dict[int, RefusedForSafety] = {}
    few = ((number, verdict, folder) for number in due for verdict, folder in sums[number].folders)
    for number, verdict, folder in chain(few, _many(files, [each for each in due if sums[each].has_more_folders])):
        doubt = looks[number].doubt(folder, verdict in _STAYING)
        if doubt is not None:
            found.setdefault(number, _refusal(doubt))
    return found


def _many(files: DataFrame, walks: Sequence[int]) -> Iterator[tuple[int, int, str]]:
    """Yields the folders of packets that have too many to come with the sums."""
    if walks:
        rows = files.filter(F.col("walk").isin(list(walks)) & F.col("folders").isNull() & F.col("data").isNotNull())
        for row in rows.mapInArrow(all_folders, FOLDERS_DDL).distinct().toLocalIterator():
            yield row["walk"], row["verdict"], row["folder"]


class _Roads:
    """The folders of one table, by what they really are."""

    def __init__(self, territory: Territory) -> None:
        self._real = territory.real
        self._own = territory.inside or ("",)
        self._called: dict[str, str] = {}

    @cached_property
    def _real_own(self) -> tuple[str, ...]:
        return tuple(map(self._real, self._own))

    def doubt(self, folder: str, all_stays: bool) -> str | None:
        """Returns why this folder may be another one than it seems; None if it is not in doubt."""
        try:
            return self._doubt(folder, all_stays)
        except PermanentStoreError as unseen:
            return unseen.message

    def _doubt(self, folder: str, all_stays: bool) -> str | None:
        real = self._real(folder)
        other = self._called.setdefault(real, folder)
        if other != folder:
            return f"{min(folder, other)} and {max(folder, other)} are one folder"
        if not all_stays and folder.startswith(self._own) != real.startswith(self._real_own):
            return f"{folder} is really {real}"
        if self._real.has_links(folder):
            return f"{folder} has links to files"
        return None


def _refusal(what: str) -> RefusedForSafety:
    return RefusedForSafety(
        f"{what}: what is needed by one name would go by the other",
        hint="plan with --engine local, which tells them apart",
    )
