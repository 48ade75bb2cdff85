"""Two roads to one folder: links and mounts by which files of one folder have two names.

Names are compared on executors as they are called. Where two of them may mean one file, that is not enough: such a
table is left to the engine that compares real names.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.errors import RefusedForSafety
from firnline.ports.engines import Territory

_LOCAL = "file:///"
_NAME = r"[^/]*\z"


def refuse_two_roads(files: DataFrame, elsewhere: DataFrame | None, territory: Territory) -> None:
    """Raises RefusedForSafety if two local folders of these files are one, or if one from which files may go only seems
    to be the table's own.

    Only folders are looked at, each once; a table that has no local folder costs nothing.
    """
    if territory.inside is not None and not any(stem.startswith(_LOCAL) for stem in territory.inside):
        return
    names = files.select("identity", "needed")
    if elsewhere is not None:
        names = names.union(elsewhere.select("identity", F.lit(True)))
    local = names.filter(F.col("identity").startswith(_LOCAL))
    rows = local.groupBy(F.regexp_replace("identity", _NAME, "").alias("folder")).agg(F.min("needed").alias("needed"))
    _refuse_doubles(((row["folder"], row["needed"]) for row in rows.toLocalIterator()), territory)


def _refuse_doubles(folders: Iterable[tuple[str, bool]], territory: Territory) -> None:
    own = territory.inside or ("",)
    real_own = tuple(map(territory.real, own))
    called: dict[str, str] = {}
    for folder, all_stays in folders:
        real = territory.real(folder)
        other = called.setdefault(real, folder)
        if other != folder:
            raise _refusal(f"{min(folder, other)} and {max(folder, other)} are one folder")
        if not all_stays and folder.startswith(own) != real.startswith(real_own):
            raise _refusal(f"{folder} is really {real}")


def _refusal(what: str) -> RefusedForSafety:
    return RefusedForSafety(
        f"{what}: what is needed by one name would go by the other",
        hint="plan with --engine local, which tells them apart",
    )
