"""Executors get what they lack: firnline's own code, and the packages that it needs there.

A cluster's executors have a Python of their own. One small job asks each what it has; what is missing is packed here
and sent once, as an archive that Spark unpacks beside the task. Nothing of what executors have is replaced.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path

from pyspark.cloudpickle import register_pickle_by_value
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from firnline.errors import UsageError
from firnline.spark import looking
from firnline.spark.describing import named
from firnline.spark.looking import Seen
from firnline.spark.packing import OPTIONAL, distributions, modules, pack
from firnline.spark.troubles import said_by

EQUIPPED = "spark.firnline.equipped"
"""Setting of a session: what identifies the code that its executors were found to have, or were sent."""

_PACKAGE = Path(__file__).parents[1]
_ASKED = 8
"""Tasks that ask at most: executors of a cluster are nearly always alike."""

_BY_HAND = "install firnline where the executors' Python is, or name a packed environment with spark.archives"
_SAME_PYTHON = "set PYSPARK_PYTHON to a Python that all executors have, of the same version as this one"


@dataclass(frozen=True, slots=True)
class Lack:
    """What executors do not have: firnline as it is here, and these modules."""

    code: bool
    modules: frozenset[str]


def equipped(session: SparkSession) -> SparkSession:
    """Returns the session, whose executors now have what a task of firnline imports.

    Raises UsageError where they cannot get it: another Python, or another platform than this one.
    """
    if _is_local(session) or session.conf.get(EQUIPPED, None) == _digest():
        return session
    lack = lack_of(_answers(session), looking.seen(()))
    if lack.code or lack.modules:
        chosen = [each for each in distributions().values() if modules(each) & lack.modules]
        archive = _packed(chosen)
        session.addArtifacts(f"{archive}#firnline", archive=True)
    session.conf.set(EQUIPPED, _digest())
    return session


def _packed(chosen: Sequence[Distribution]) -> Path:
    """Returns the archive. Raises UsageError where it cannot be written: no room, or a home that may not be written."""
    try:
        return pack(_PACKAGE, chosen, _digest())
    except OSError as problem:
        hint = f"set XDG_CACHE_HOME to a folder that can be written, or {_BY_HAND}"
        raise UsageError(f"what executors lack cannot be packed: {problem}", hint) from problem


def _is_local(session: SparkSession) -> bool:
    """Tells whether the tasks run beside this process, with its own Python."""
    return not is_remote() and str(session.sparkContext.master).partition("[")[0] == "local"


def lack_of(answers: Sequence[Seen], here: Seen) -> Lack:
    """Returns what is missing anywhere. Raises UsageError where it would have to be made for another platform: there
    only what makes decoding fast can be done without.
    """
    missing = frozenset(name for each in answers for name in each["missing"])
    elsewhere = next((each["platform"] for each in answers if each["platform"] != here["platform"]), None)
    if elsewhere is not None and missing - OPTIONAL:
        lacking = ", ".join(sorted(missing - OPTIONAL))
        raise UsageError(f"executors on {elsewhere} lack {lacking}, and this is {here['platform']}", _BY_HAND)
    code = any(each["firnline"] != here["firnline"] for each in answers)
    return Lack(code, missing if elsewhere is None else frozenset())


def _answers(session: SparkSession) -> list[Seen]:
    """Returns what executors say of themselves. Asked by a plain function: they may not even have pyarrow."""
    register_pickle_by_value(looking)  # type: ignore[no-untyped-call]
    names = sorted(name for each in distributions().values() for name in modules(each))
    tasks = _ASKED if is_remote() else min(_ASKED, max(2, session.sparkContext.defaultParallelism))
    look = F.udf(looking.looker(names), "string", useArrow=False)
    try:
        with named(session, "asking executors what they have"):
            rows = session.range(0, tasks, 1, tasks).select(look("id")).collect()
    except PySparkException as problem:
        raise UsageError(f"executors cannot run Python: {said_by(problem)}", _SAME_PYTHON) from problem
    return [json.loads(text) for (text,) in rows]


@cache
def _digest() -> str:
    return looking.digest(str(_PACKAGE))
