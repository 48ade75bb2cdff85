"""Which metadata file of a table's folder is the current one, judged by names and the version hint alone.

Two ways of naming exist. Iceberg's path tables count `v1.metadata.json`, `v2.metadata.json` … and hint at
the newest in `version-hint.text`; catalogs write `00001-<uuid>.metadata.json`, where only the catalog knows
for sure. An older file taken for the current one makes everything newer look like garbage: whatever is
ambiguous is refused.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from firnline.errors import UnreadableMetadata

HINT = "version-hint.text"
_COUNTED = re.compile(r"v(\d+)(\.\w+)?\.metadata\.json(\.\w+)?")
_UNIQUE = re.compile(r"(\d+)-.+\.metadata\.json(\.\w+)?")
_NUMBER = re.compile(r"[0-9]{1,18}")
_POINT = "point at the metadata file itself, or name the table by its catalog"

Versions = Mapping[int, list[str]]


class Gap(UnreadableMetadata):
    """A version is missing between the current one and newer ones."""


def is_metadata_file(location: str) -> bool:
    """Tells whether a location names a metadata file rather than a table's folder."""
    return re.search(r"\.metadata\.json(\.\w+)?$", location) is not None


def counted_version(name: str) -> int | None:
    """Returns N of `vN.metadata.json`, in any compression."""
    match = _COUNTED.fullmatch(name)
    return int(match[1]) if match else None


def version_hinted(hint: str | None) -> int | None:
    """Returns the version that a hint names; None where it names none."""
    text = (hint or "").strip()
    return int(text) if _NUMBER.fullmatch(text) else None


def passed_names(names: Iterable[str], hinted: int, current: int) -> list[str]:
    """Returns the metadata files from the version that the hint names up to the one before the current; none where the
    hinted one is not there: no reader walks from it.
    """
    counted = _by_version(names, _COUNTED)
    if hinted not in counted:
        return []
    return [name for version in sorted(counted) if hinted <= version < current for name in counted[version]]


def current_name(names: Iterable[str], hint: str | None) -> str | None:
    """Returns the name of the current metadata file, None where there is none. Raises UnreadableMetadata."""
    counted, unique = _by_version(names, _COUNTED), _by_version(names, _UNIQUE)
    if counted and unique:
        first, second = counted[max(counted)][0], unique[max(unique)][0]
        raise UnreadableMetadata(f"a catalog and a path both wrote metadata here: {second} and {first}", _POINT)
    if counted or version_hinted(hint):
        return _only(counted, _walk(counted, version_hinted(hint)))
    return _only(unique, max(unique)) if unique else None


def _walk(counted: Versions, hinted: int | None) -> int:
    """Returns the version at the end of the unbroken row that starts at the hint, as Iceberg walks it.

    A hint that is absent, not a number or older than every file is stale, and the highest version is meant.
    A hint that is newer than every file says that the newest metadata is lost: older ones must not stand in
    for it.
    """
    newest = max(counted, default=0)
    if hinted is not None and hinted > newest:
        raise UnreadableMetadata(f"{HINT} says version {hinted}, but its metadata file is missing", _POINT)
    version = hinted if hinted is not None and hinted in counted else newest
    while version + 1 in counted:
        version += 1
    if version < newest:
        raise Gap(f"metadata version {version + 1} is missing between {version} and {newest}", _POINT)
    return version


def _only(versions: Versions, version: int) -> str:
    found = versions[version]
    if len(found) > 1:
        raise UnreadableMetadata(f"two metadata files claim version {version}: {' and '.join(found)}", _POINT)
    return found[0]


def _by_version(names: Iterable[str], pattern: re.Pattern[str]) -> Versions:
    found: dict[int, list[str]] = defaultdict(list)
    for name in sorted(names):
        if match := pattern.fullmatch(name):
            found[int(match[1])].append(name)
    return dict(found)
