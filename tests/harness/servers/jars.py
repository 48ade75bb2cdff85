"""Jars by their Maven coordinates, fetched with the resolver that Spark brings along, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.servers.cache import alone, cache_folder
from harness.servers.process import Missing, program

# No descriptors: the coordinates are complete, and descriptors with their parents are most of the requests.
_SETTINGS = """<ivysettings><settings defaultResolver="maven"/><resolvers>
<ibiblio name="maven" m2compatible="true" usepoms="false" checksums="sha1"/></resolvers></ivysettings>"""
_MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="firnline" module="jars"/><dependencies>{}</dependencies></ivy-module>"""
_PATTERN = "[organisation]-[artifact]-[revision](-[classifier]).[ext]"


def java() -> str:
    """Returns the path of Java; JAVA_HOME comes first."""
    return program("java", "openjdk-17-jre-headless", [Path(os.environ.get("JAVA_HOME", "")) / "bin"])


def fetch(coordinates: Sequence[str]) -> Path:
    """Returns a folder with exactly the jars of these coordinates, `group:name:version` or with `:classifier`.

    Raises Missing where they cannot be had.
    """
    key = hashlib.sha256("\n".join(coordinates).encode()).hexdigest()[:16]
    folder = cache_folder("jars") / key
    with alone(folder.with_suffix(".lock")):
        if not folder.exists():
            _fetch(coordinates, folder)
    return folder


def for_spark(coordinates: Sequence[str]) -> str:
    """Returns the jars of these coordinates as a Spark session takes them: paths, with commas between.

    A session that gets names instead (`spark.jars.packages`) resolves them anew each time, which takes seconds, and two
    that do so at once spoil each other's cache.
    """
    return ",".join(sorted(str(path) for path in fetch(coordinates).glob("*.jar")))


def spark_jars(*prefixes: str) -> list[str]:
    """Returns the jars that came with pyspark and whose names begin so."""
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise Missing("pyspark is not installed")
    jars = (Path(spark.origin).parent / "jars").glob("*.jar")
    return sorted(str(path) for path in jars if path.name.startswith(prefixes))


def _fetch(coordinates: Sequence[str], folder: Path) -> None:
    draft = folder.with_suffix(".part")
    shutil.rmtree(draft, ignore_errors=True)
    with TemporaryDirectory() as work:
        settings, module = Path(work) / "settings.xml", Path(work) / "ivy.xml"
        settings.write_text(_SETTINGS)
        module.write_text(_MODULE.format(_dependencies(coordinates)))
        ivy = [java(), "-cp", ":".join(spark_jars("ivy-", "commons-cli-")), "org.apache.ivy.Main"]
        files = ["-settings", str(settings), "-ivy", str(module), "-cache", f"{work}/cache"]
        command = [*ivy, *files, "-retrieve", f"{draft}/{_PATTERN}"]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
    if said.returncode:
        raise Missing(f"jars cannot be fetched:\n{said.stdout[-1500:]}{said.stderr[-500:]}")
    draft.replace(folder)


def _dependencies(coordinates: Sequence[str]) -> str:
    """One element for each module: two of the same module would hide each other."""
    modules: dict[tuple[str, ...], str] = defaultdict(str)
    for coordinate in coordinates:
        group, name, version, *classifier = coordinate.split(":")
        marked = f' m:classifier="{classifier[0]}"' if classifier else ""
        modules[group, name, version] += f'<artifact name="{name}" type="jar" ext="jar"{marked}/>'
    return "".join(
        f'<dependency org="{group}" name="{name}" rev="{version}" transitive="false">{artifacts}</dependency>'
        for (group, name, version), artifacts in modules.items()
    )
