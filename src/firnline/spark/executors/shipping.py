"""Executors get what they lack: an archive of firnline's own code and of the packages that it needs there.

A cluster's executors have a Python of their own. One small job asks each what it has; what is missing is packed here
and sent once, as an archive that Spark unpacks beside the task. Nothing of what executors have is replaced.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from pathlib import Path
from typing import IO

from pyspark.cloudpickle import register_pickle_by_value
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from firnline.arrival import PACKED
from firnline.errors import UsageError
from firnline.own_files import create, half_of, is_half, is_own_folder, own_cache, read_own
from firnline.ports.kits import GROUP
from firnline.spark import looking
from firnline.spark.looking import Seen
from firnline.spark.spread import is_local
from firnline.spark.streaming import named
from firnline.spark.telling import said_by

NEEDED = (
    "arro3-core", "boto3", "cramjam", "deflate", "isal", "numba", "numpy", "obstore", "platformdirs", "psycopg",
    "psycopg-binary", "pyarrow", "pyiceberg", "pyyaml", "redis", "sqlalchemy", "zstandard",
)  # fmt: skip
"""What firnline imports on executors, and where Spark plans a query; what these need themselves comes with them."""

OPTIONAL = frozenset({"cramjam", "deflate", "isal", "llvmlite", "numba", "zstandard"})
"""Modules that make decoding fast: without them it is slow, and right."""

_UNUSED = re.compile(r"(^|/)(__pycache__|tests?|include|src)/|\.(pyc|pyi|pxd|pyx|h|hpp|cpp|cc)$")
_ARCHIVE = re.compile(r"firnline-[0-9a-f]{16}-[0-9a-f]{64}\.tar\.gz")
_DAYS_KEPT = 30


def needed() -> tuple[str, ...]:
    """Returns the names of the distributions that executors need: also those that a format of another package is in."""
    found = (point.dist for point in entry_points(group=GROUP))
    return (*NEEDED, *(each.name for each in found if each is not None))


def distributions(names: Iterable[str] | None = None) -> dict[str, Distribution]:
    """Returns the distributions of these names, or those that executors need, with all that they require and that is
    installed.
    """
    found: dict[str, Distribution] = {}
    waiting = list(needed() if names is None else names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        with suppress(PackageNotFoundError):
            found[name] = distribution(name)
            waiting += [_name(each) for each in found[name].requires or () if "extra ==" not in each]
    return found


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]


def modules(of: Distribution) -> set[str]:
    """Returns the names that a distribution is imported by."""
    first = {Path(name).parts[0] for name, _ in _files(of)}
    return {each.partition(".")[0] for each in first if not each.endswith((".dist-info", ".libs", ".data", ".pth"))}


def pack(package: Path, chosen: Iterable[Distribution], digest: str) -> Path:
    """Returns an archive of the package with the chosen distributions inside it, made once and kept in the cache.

    Executors run what is in it. So one that was kept is taken only if it is this user's own, as the folder is, and if
    its bytes are those that its name says. Raises OSError where it cannot be kept.
    """
    chosen = sorted(chosen, key=lambda each: each.name)
    known = hashlib.sha256("\n".join([digest, *(f"{each.name} {each.version}" for each in chosen)]).encode())
    folder, stem = _folder(), f"firnline-{known.hexdigest()[:16]}"
    place = next((path for path in sorted(folder.glob(f"{stem}-*.tar.gz")) if _is_sound(path)), None)
    if place is not None:
        os.utime(place)
        return place
    half = half_of(folder / stem)
    try:
        with open(create(half, 0o600), "wb") as target:
            _write(target, _code(package), _installed(chosen))
        place = folder / f"{stem}-{_digest_of(half)}.tar.gz"
        os.replace(half, place)  # closed before: two drivers may pack at once, and each file is whole under its name
    except BaseException:
        half.unlink(missing_ok=True)
        raise
    return place


def _is_sound(archive: Path) -> bool:
    """Tells whether an archive is this user's own, and as it was when it got its name."""
    try:
        found = read_own(archive)
    except OSError:  # a link, or gone: another driver removes what is old
        return False
    return found is not None and archive.name == f"{archive.name[:25]}-{hashlib.sha256(found).hexdigest()}.tar.gz"


def _digest_of(archive: Path) -> str:
    with archive.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(target: IO[bytes], code: Iterable[tuple[str, bytes]], files: Iterable[tuple[str, Path]]) -> None:
    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=1) as archive:
        for name, text in code:
            about = tarfile.TarInfo(name)
            about.size, about.mtime = len(text), int(time.time())  # Python tells a new module from its time, too
            archive.addfile(about, io.BytesIO(text))
        for name, source in files:
            archive.add(source, name, recursive=False)


def _code(package: Path) -> Iterator[tuple[str, bytes]]:
    return ((name, text) for name, text in looking.sources(str(package)) if not _UNUSED.search(name))


def _installed(chosen: Iterable[Distribution]) -> Iterator[tuple[str, Path]]:
    for each in chosen:
        for name, source in _files(each):
            yield f"{PACKED}/{name}", source


def _files(of: Distribution) -> Iterator[tuple[str, Path]]:
    """Yields what a distribution put into site-packages and is still there, without what nobody imports."""
    for each in of.files or ():
        name, source = each.as_posix(), Path(str(of.locate_file(each)))
        if not name.startswith(("..", "/")) and not _UNUSED.search(name) and source.exists():
            yield name, source


def _folder() -> Path:
    """Returns the folder of archives, without those that nobody has used for a month. Raises OSError where others may
    write to it: they could put an archive there that all executors run.
    """
    folder = own_cache("packed")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_own_folder(folder):
        raise PermissionError(f"{folder} is not this user's own, or others may write to it")
    for old in folder.iterdir():
        with suppress(OSError):  # another driver removed it first
            if _is_own_name(old.name) and old.lstat().st_mtime < time.time() - _DAYS_KEPT * 86_400:
                old.unlink()
    return folder


def _is_own_name(name: str) -> bool:
    return _ARCHIVE.fullmatch(name) is not None or is_half(name)


EQUIPPED = "spark.firnline.equipped"
"""Setting of a session: what identifies the code that its executors were found to have, or were sent."""

_PACKAGE = Path(__file__).parents[2]
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
    if (is_local(session) and _runs_this_python(session)) or session.conf.get(EQUIPPED, None) == _digest():
        return session
    lack = lack_of(_answers(session), looking.seen(()))
    if lack.code or lack.modules:
        chosen = [each for each in distributions().values() if modules(each) & lack.modules]
        archive = _packed(chosen)
        session.addArtifacts(f"{archive}#firnline", archive=True)
    session.conf.set(EQUIPPED, _digest())
    return session


def _runs_this_python(session: SparkSession) -> bool:
    """Tells whether tasks beside this process run its very Python. A session that was handed in may take another from
    the path, which has other packages: a program that is run by its `.venv/bin/python` is not seen by `python3`.
    """
    theirs, ours = shutil.which(session.sparkContext.pythonExec), Path(sys.executable)
    same_folder = theirs is not None and Path(theirs).parent.absolute() == ours.parent.absolute()
    return theirs is not None and same_folder and os.path.samefile(theirs, ours)


def _packed(chosen: Sequence[Distribution]) -> Path:
    """Returns the archive. Raises UsageError where it cannot be written: no room, or a home that may not be written."""
    try:
        return pack(_PACKAGE, chosen, _digest())
    except OSError as problem:
        hint = f"set XDG_CACHE_HOME to a folder that can be written, or {_BY_HAND}"
        raise UsageError(f"what executors lack cannot be packed: {problem}", hint) from problem


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
