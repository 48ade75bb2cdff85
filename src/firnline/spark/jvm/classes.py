"""With what the JVM of a session of ours starts, above all an archive of the classes that it will load: a JVM that maps
one starts in two thirds of the time.

The first JVM that has none writes one when it ends, for one Java and the jars of one Spark. A JVM that an archive does
not fit starts without it, and says nothing; one that maps half an archive dies. So its name says how long it is. An
archive is code: anyone who may write to it runs what they like.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from pyspark import SparkContext, find_spark_home

from firnline.own_files import half_of, is_half, is_own, is_own_folder, own_cache

OPTIONS, LAUNCHER_OPTIONS = "SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"
"""What the JVM of a session is started with, and the one before it, which only puts the other's command together."""

QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
"""For a JVM that ends before an optimiser's work pays off: that takes a core from it for its first minute."""

BRIEF = f"-XX:+UseSerialGC {QUICK_COMPILER}"
"""For one that ends within seconds and does little."""

BUFFERS = "-Dio.netty.noUnsafe=false"
"""Arrow's buffers stand on what Netty gives up by itself from Java 24 on: without it no row reaches that JVM."""

_SILENT = "-XX:+IgnoreUnrecognizedVMOptions -Xlog:cds=off -Xlog:cds+dynamic=off"
_ENDS_WITHIN_S = 60.0
_FORGOTTEN_S = 600.0
"""A JVM writes for seconds."""
_OUTDATED_S = 30 * 86_400.0
_MODE = 0o600
_SUFFIX = ".jsa"


def mapped(archive: Path) -> str:
    """Returns what makes a JVM map an archive."""
    return f"{_SILENT} -XX:SharedArchiveFile={archive}"


def written(archive: Path) -> str:
    """Returns what makes a JVM write an archive when it ends."""
    return f"{_SILENT} -XX:ArchiveClassesAtExit={archive}"


def fit() -> str | None:
    """Returns the name of the archive that fits this Java and this Spark; None where there is no Java that has any."""
    home = os.environ.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if found is None or not os.path.exists(found):
        return None
    java, jars = Path(found).resolve(), Path(_spark_home(), "jars").resolve()
    with suppress(OSError):
        if "OpenJ9" in java.parent.with_name("release").read_text(errors="replace"):  # has archives of its own making
            return None
    parts = [f"{each} {each.stat().st_mtime_ns}" for each in (java, jars)]
    return f"spark-{hashlib.sha256(' '.join(parts).encode()).hexdigest()[:16]}{_SUFFIX}"


def _spark_home() -> str:
    finder: Any = find_spark_home
    return str(finder._find_spark_home())


@contextmanager
def quick_start(*, brief: bool = False) -> Iterator[None]:
    """Around the start of a session: a JVM that it starts maps the archive, or is to write it; a brief one, which is
    for one command, compiles quickly. Options that the environment has are the user's own, and stand alone.
    """
    if OPTIONS in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ or SparkContext._gateway is not None:
        yield
        return
    archive = None
    with suppress(OSError):  # a home that cannot be written to
        archive = _place()
    compiler = QUICK_COMPILER if brief else ""
    with _with_archive(archive, compiler) if archive else _in_environment(compiler):
        yield


def _place() -> Path | None:
    """Returns where the archive lies or is to lie, but for its length; None if no archive can be. Raises OSError."""
    name, folder = fit(), own_cache("code")
    if name is None or " " in str(folder):  # the options are split at blanks
        return None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / name if is_own_folder(folder) else None


def sized(archive: Path, length: int) -> Path:
    """Returns what an archive of that length is called."""
    return archive.with_name(f"{archive.stem}-{length}{_SUFFIX}")


def _whole(archive: Path) -> Iterator[Path]:
    """Yields the archives that are there, as long as their names say. Several processes may have left one each."""
    for each in archive.parent.glob(f"{archive.stem}-*{_SUFFIX}"):
        with suppress(FileNotFoundError):
            if each == sized(archive, each.lstat().st_size):
                yield each


@contextmanager
def _with_archive(archive: Path, compiler: str) -> Iterator[None]:
    found = list(_whole(archive))
    ours = next(filter(_is_ours, found), None)
    if ours is not None:
        with _mapping(ours, compiler):
            yield
    else:
        with _in_environment(compiler) if found else _to_be_written(archive, compiler):
            yield


def _is_ours(archive: Path) -> bool:
    with suppress(FileNotFoundError):
        found = archive.lstat()
        return stat.S_ISREG(found.st_mode) and is_own(found)
    return False


@contextmanager
def _mapping(archive: Path, compiler: str) -> Iterator[None]:
    """A JVM that did not start may have stumbled over a damaged archive: the next one goes without."""
    try:
        with _in_environment(mapped(archive), compiler):
            yield
    except Exception:
        archive.unlink(missing_ok=True)
        raise


@contextmanager
def _to_be_written(archive: Path, compiler: str) -> Iterator[None]:
    _sweep(archive.parent)
    draft = half_of(archive)
    with _in_environment(written(draft), compiler):
        yield
    atexit.register(_keep, draft, archive)


def _sweep(folder: Path) -> None:
    """Removes drafts of processes that were killed while their JVM wrote, archives of a Java or a Spark of old, and
    those that are shorter than they were.
    """
    for each in folder.iterdir():
        found = each.lstat()
        age = time.time() - found.st_mtime
        is_left = age > _OUTDATED_S or not each.stem.endswith(f"-{found.st_size}")
        if (is_half(each.name) and age > _FORGOTTEN_S) or (each.suffix == _SUFFIX and is_left):
            each.unlink(missing_ok=True)


@contextmanager
def _in_environment(*options: str) -> Iterator[None]:
    """Has the environment say the options for as long as this lasts: the JVM that is started then inherits them."""
    values = {
        OPTIONS: " ".join(filter(None, (BUFFERS, *options))),
        LAUNCHER_OPTIONS: os.environ.get(LAUNCHER_OPTIONS, BRIEF),
    }
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _keep(draft: Path, archive: Path) -> None:
    """Ends the JVM, which writes the draft then, and keeps that under the archive's name. Several processes may do so
    at once: each has a draft of its own, and any of them will do.

    Only a draft of a JVM that ended by itself is whole: one that was cut short must never be mapped.
    """
    try:
        with suppress(Exception, KeyboardInterrupt):
            if _end_jvm() and draft.exists():
                _settle(draft)
                draft.replace(sized(archive, draft.stat().st_size))
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _settle(draft: Path) -> None:
    """Sees to it that no power cut leaves a name before its bytes."""
    draft.chmod(_MODE)
    handle = os.open(draft, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _end_jvm() -> bool:
    """Tells whether the JVM of this process ended by itself, in time."""
    gateway: Any = SparkContext._gateway
    if gateway is None:
        return False
    if sys.stderr.isatty():
        print("keeping the classes that Spark loaded: it starts sooner the next time", file=sys.stderr)
    context: Any = SparkContext._active_spark_context
    if context is not None:
        context.stop()  # else a thread of its own tells with a traceback that the JVM is gone
    gateway.shutdown()
    gateway.proc.stdin.close()  # it ends by that
    try:
        return bool(gateway.proc.wait(_ENDS_WITHIN_S) == 0)
    except TimeoutExpired:
        return False
