"""The columns that every table of the worlds has, and how one table differs from another."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

COLUMNS = {
    "k": "INT",
    "v": "STRING",
    "p": "STRING",
    "d": "DATE",
    "n": "INT",
    "y": "BOOLEAN",
    "t": "TIMESTAMP(3)",
}
"""Types by column, in the order of a row. The last five may be partition keys."""

MAIN = "main"
Row = tuple[Any, ...]
"""Values in the order of COLUMNS: a date is its days since 1970, a timestamp its milliseconds."""

# No comma and no "null": rows come back from Java as text.
AWKWARD: Mapping[str, tuple[Any, ...]] = {
    "p": ("a", "a/b=c", "%41", "p=a", "longer than seven bytes", "ü ö", "x:y?#*", "{[^]}", "\ttab", " ", ""),
    "d": (0, 19_999, -1),
    "n": (0, -7, 2_147_483_647),
    "y": (True, False),
    "t": (0, 1_700_000_000_123, 1_700_000_040_000, -1),
}
PARTITIONINGS = ((), (), (), ("p",), ("p",), ("p", "n"), ("d",), ("t", "y"), ("n", "p"))


@dataclass(frozen=True)
class Shape:
    """A table before its first commit. `writer` is `java` or `python`."""

    writer: str
    keyed: bool
    partitions: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.partitions, "k") if self.keyed else ()

    @property
    def buckets(self) -> int:
        return int(self.options.get("bucket", "-1"))

    @property
    def decoupled(self) -> bool:
        """Whether changelogs outlive the snapshots that they came with."""
        return "changelog.num-retained.max" in self.options


def draw(rng: random.Random, writer: str, external: str) -> Shape:
    """Returns the shape of a table; one that keeps files elsewhere keeps them under `external`."""
    keyed = rng.random() < 0.6
    options = {
        "manifest.merge-min-count": str(rng.randint(2, 8)),
        "manifest.target-file-size": rng.choice(["8 mb", "8 mb", "2 kb"]),
        **_buckets(rng, writer, keyed),
    }
    if writer == "java":
        options |= _layout(rng, external) | _changes(rng, keyed)
    return Shape(writer, keyed, rng.choice(PARTITIONINGS), options)


def _buckets(rng: random.Random, writer: str, keyed: bool) -> dict[str, str]:
    if keyed:
        return {"bucket": rng.choice(["1", "2", "2", "-1"] if writer == "java" else ["1", "2"])}
    return rng.choice([{"bucket": "-1"}, {"bucket": "2", "bucket-key": "k"}])


def _layout(rng: random.Random, external: str) -> dict[str, str]:
    """Where files lie, and which files lie beside them."""
    chosen: dict[str, str] = {}
    if rng.random() < 0.25:
        chosen["data-file.path-directory"] = "rows"
    if rng.random() < 0.25:
        chosen |= {"data-file.external-paths": external, "data-file.external-paths.strategy": "round-robin"}
    if rng.random() < 0.3:
        chosen |= {"file-index.bloom-filter.columns": "v", "file-index.in-manifest-threshold": "1 b"}
    if rng.random() < 0.25:
        chosen["partition.legacy-name"] = "false"
    if rng.random() < 0.25:
        chosen["index-file-in-data-file-dir"] = "true"
    return chosen


def _changes(rng: random.Random, keyed: bool) -> dict[str, str]:
    """What a table writes beside its rows: changelogs and deletion vectors."""
    chosen: dict[str, str] = {}
    if keyed:
        chosen["changelog-producer"] = rng.choice(["none", "none", "input", "lookup", "full-compaction"])
        if chosen["changelog-producer"] in ("none", "lookup") and rng.random() < 0.6:
            chosen["deletion-vectors.enabled"] = "true"
    if rng.random() < 0.4:
        chosen |= {"changelog.num-retained.min": "1000", "changelog.num-retained.max": "2000"}
    return chosen
