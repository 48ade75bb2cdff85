"""Random Iceberg tables, written by Iceberg's Java core API and laid out on disk as path tables.

The shape of a world follows from its seed; snapshot ids and names of metadata files do not, Java draws those.
Commits run against Java's in-memory catalog (Hadoop's local file system starts a process for every file
that it writes) and the result is written to disk in one go.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.java_gateway import get_method
from py4j.protocol import Py4JJavaError

from .backdating import backdate
from .jvm import Jvm
from .materials import Materials
from .operations import Operations, named
from .places import canonical

PLAIN = {
    "append_fast": 5,
    "append_merge": 6,
    "overwrite": 4,
    "replace_partitions": 1,
    "delete_files": 3,
    "re_add": 2,
    "rewrite_data": 3,
    "rewrite_manifests": 1,
    "position_deletes": 3,
    "equality_deletes": 2,
    "deletion_vectors": 6,
    "rewrite_deletes": 2,
    "properties": 1,
    "main_retention": 1,
    "statistics": 1,
    "partition_statistics": 1,
    "upgrade": 0.5,
    "evolve_spec": 0.5,
}
FORKED = {
    "rollback": 2,
    "set_current": 1,
    "stage": 4,
    "cherry_pick": 6,
    "gap": 1,
    "branch": 3,
    "tag": 3,
    "drop_ref": 1,
    "fast_forward": 4,
    "replace_ref": 1,
    "ref_retention": 5,
}
EVERY_OPERATION = frozenset(PLAIN) | frozenset(FORKED)
METADATA_NAME = re.compile(r"(\d{5})-[0-9a-f-]{36}(\.gz)?\.metadata\.json")
REFUSALS = ("ValidationException", "CherrypickAncestorCommitException")


@dataclass(frozen=True)
class World:
    """One table on disk, the time at which it is judged, and what its history is made of."""

    seed: int
    location: Path
    metadata: Path
    now: int
    document: dict[str, Any]
    operations: Counter[str] = field(default_factory=Counter)

    @property
    def times(self) -> list[int]:
        return sorted(snapshot["timestamp-ms"] for snapshot in self.document["snapshots"])


def build(jvm: Jvm, seed: int, location: Path, make: type[Materials] = Materials) -> World:
    """Write the world of a seed into an empty folder. `make` says what its files hold."""
    rng = random.Random(seed)
    spelled = rng.choice(["", "", "file:", "file://"]) + str(location)
    version = rng.choice([1, 1, 2, 2, 3, 3, 3])
    table = _create(jvm, rng, spelled, version)
    materials = make(jvm, rng, table, spelled, f"{spelled}-elsewhere")
    operations = Operations(jvm, rng, table, materials)
    done = _run(operations, rng, version)
    document = operations.state()
    now = int(time.time() * 1000)
    backdate(document, rng, now)
    if _can_be_inline(document, done) and rng.random() < 0.5:
        _inline(jvm, table, document, rng)
        done["inline_manifests"] += 1
    metadata = _lay_out(jvm, location, document)
    return World(seed, location, metadata, now, document, done)


# ---------------------------------------------------------------- history


def _create(jvm: Jvm, rng: random.Random, location: str, version: int) -> Any:
    catalog = jvm.iceberg("inmemory.InMemoryCatalog")()
    catalog.initialize("worlds", jvm.map({}))
    catalog.createNamespace(jvm.iceberg("catalog.Namespace").of(jvm.array("java.lang.String", ["n"])))
    schema = _schema(jvm)
    spec = jvm.iceberg("PartitionSpec").builderFor(schema)
    spec = (spec.identity("p") if rng.random() < 0.6 else spec).build()
    identifier = jvm.iceberg("catalog.TableIdentifier").parse("n.t")
    builder = catalog.buildTable(identifier, schema).withPartitionSpec(spec).withLocation(location)
    return builder.withProperties(jvm.map(_properties(rng, version))).create()


def _schema(jvm: Jvm) -> Any:
    types = "types.Types"
    nested = jvm.iceberg(f"{types}.NestedField")
    one = nested.required(1, "id", jvm.iceberg(f"{types}.LongType").get())
    other = nested.optional(2, "p", jvm.iceberg(f"{types}.StringType").get())
    return jvm.iceberg("Schema")(jvm.array(f"org.apache.iceberg.{types}.NestedField", [one, other]))


def _properties(rng: random.Random, version: int) -> dict[str, str]:
    return {
        "format-version": str(version),
        "write.metadata.compression-codec": rng.choice(["none", "gzip"]),
        "commit.manifest.min-count-to-merge": str(rng.randint(2, 6)),
        "commit.manifest-merge.enabled": rng.choice(["true", "true", "true", "false"]),
        "compatibility.snapshot-id-inheritance.enabled": rng.choice(["true", "false", "false"]),
    }


def _run(operations: Operations, rng: random.Random, version: int) -> Counter[str]:
    done: Counter[str] = Counter({f"format_v{version}": 1})
    weights = {name: weight * rng.choice([0.3, 1, 3]) for name, weight in PLAIN.items()}
    if rng.random() < 0.5:
        weights |= {name: weight * rng.choice([0.3, 1, 3]) for name, weight in FORKED.items()}
    length = rng.randint(5, 40)
    operations.first_append()
    names, chances = list(weights), list(weights.values())
    for _ in range(length * 3):
        if sum(done[name] for name in EVERY_OPERATION) >= length:
            break
        _attempt(operations, rng.choices(names, chances)[0], done)
    return done


def _attempt(operations: Operations, name: str, done: Counter[str]) -> None:
    """Do one operation; a commit that Java itself refuses (a cherry-pick twice, say) is counted and left."""
    try:
        if named(operations, name)():
            done[name] += 1
    except Py4JJavaError as error:
        if error.java_exception.getClass().getSimpleName() not in REFUSALS:
            raise
        done[f"refused_{name}"] += 1


# ---------------------------------------------------------------- inline manifests (format version 1)


def _can_be_inline(document: dict[str, Any], done: Counter[str]) -> bool:
    """Java takes the first spec for every manifest named inline, so later specs rule it out."""
    inherits = document["properties"].get("compatibility.snapshot-id-inheritance.enabled") == "true"
    return document["format-version"] == 1 and not inherits and not done["evolve_spec"]


def _inline(jvm: Jvm, table: Any, document: dict[str, Any], rng: random.Random) -> None:
    """Name the manifests of the oldest snapshots in the metadata itself, as early writers did."""
    path_of = jvm.function("org.apache.iceberg.ManifestFile", "path", "java.lang.String")
    for snapshot in document["snapshots"][: rng.randint(1, len(document["snapshots"]))]:
        manifests = table.snapshot(snapshot["snapshot-id"]).allManifests(table.io())
        table.io().deleteFile(snapshot.pop("manifest-list"))
        snapshot["manifests"] = jvm.texts(manifests, path_of)


# ---------------------------------------------------------------- disk


def _lay_out(jvm: Jvm, location: Path, document: dict[str, Any]) -> Path:
    """Write every metadata file as a path table has it (v1, v2, …) and the back-dated one as the newest."""
    files = _take_files(jvm)
    versions = sorted(name for name in files if METADATA_NAME.search(name))
    newest = len(versions) + 1
    for name, content in files.items():
        path = Path(canonical(METADATA_NAME.sub(_version_name, name)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    last = METADATA_NAME.sub(_version_name, versions[-1])
    log = document.setdefault("metadata-log", [])
    log.append({"timestamp-ms": document["last-updated-ms"], "metadata-file": last})
    text = METADATA_NAME.sub(_version_name, json.dumps(document)).encode()
    zipped = document["properties"]["write.metadata.compression-codec"] == "gzip"
    path = location / "metadata" / f"v{newest}{'.gz' if zipped else ''}.metadata.json"
    path.write_bytes(gzip.compress(text) if zipped else text)
    (location / "metadata" / "version-hint.text").write_text(str(newest))
    return path


def _version_name(name: re.Match[str]) -> str:
    return f"v{int(name[1]) + 1}{name[2] or ''}.metadata.json"


def _take_files(jvm: Jvm) -> dict[str, bytes]:
    """Everything that the in-memory store holds; it is empty afterwards."""
    held = jvm.type("org.apache.iceberg.inmemory.InMemoryFileIO").getDeclaredField("IN_MEMORY_FILES")
    held.setAccessible(True)
    files = held.get(None)
    names, contents = jvm.texts(files.keySet()), jvm.texts(get_method(files, "values")(), jvm.base64())
    files.keySet().clear()
    return {name: base64.b64decode(content) for name, content in zip(names, contents, strict=True)}
