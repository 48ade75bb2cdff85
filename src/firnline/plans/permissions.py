"""What each command needs to be allowed: one table of verbs, from which every store's own words are derived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from firnline.errors import UsageError
from firnline.model.locations import parse_location


class Verb(StrEnum):
    GET = "get"
    LIST = "list"
    PUT = "put"
    DELETE = "delete"
    INSPECT = "inspect"


class Place(StrEnum):
    METADATA = "metadata"
    FILES = "files"
    RECORDS = "records"


class CatalogUse(StrEnum):
    NONE = "none"
    READ = "read"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True)
class Need:
    verb: Verb
    place: Place


@dataclass(frozen=True, slots=True)
class Uses:
    """What a command does. Without a need it fails before it changes anything; without a help it works, with less."""

    needs: tuple[Need, ...]
    catalog: CatalogUse
    helps: tuple[Need, ...] = ()


_READ = (Need(Verb.GET, Place.METADATA),)
_LOOK = (Need(Verb.GET, Place.FILES),)
_WRITE = (Need(Verb.PUT, Place.METADATA),)
_RECORDED = (Need(Verb.LIST, Place.RECORDS), Need(Verb.GET, Place.RECORDS))
_RECORD = (*_RECORDED, Need(Verb.PUT, Place.RECORDS))
_TIDY = (Need(Verb.DELETE, Place.RECORDS),)
_PURGE = (Need(Verb.DELETE, Place.FILES),)
_SEARCH = (Need(Verb.LIST, Place.FILES),)
_REMEMBER = (Need(Verb.LIST, Place.METADATA),)
_INSPECT = (Need(Verb.INSPECT, Place.FILES),)

_READING = Uses(_READ, CatalogUse.READ)
_TELL_TIME = (Need(Verb.PUT, Place.RECORDS), Need(Verb.GET, Place.RECORDS))
_MARKING = Uses((*_READ, *_WRITE, *_TELL_TIME), CatalogUse.COMMIT, _TIDY)
_CARRYING = Uses((*_READ, *_WRITE, *_RECORD, *_TIDY, *_PURGE), CatalogUse.COMMIT, _INSPECT)
_PURGING = (*_RECORD, *_TIDY, *_PURGE)
_SEARCHING = Uses((*_LOOK, *_SEARCH, *_PURGING), CatalogUse.READ, _INSPECT)

COMMANDS: dict[str, Uses] = {
    "tables": Uses((), CatalogUse.READ),
    "plan": Uses(_READ, CatalogUse.READ, _REMEMBER),
    "why": Uses((*_READ, *_RECORDED), CatalogUse.READ),
    "expire": Uses(_CARRYING.needs, CatalogUse.COMMIT, (*_REMEMBER, *_INSPECT)),
    "commit": _CARRYING,
    "purge": Uses((*_READ, *_PURGING), CatalogUse.READ, _INSPECT),
    "undo": Uses((*_LOOK, *_WRITE, *_RECORD), CatalogUse.COMMIT, _TIDY),
    "resume": _CARRYING,
    "runs": Uses((*_READ, *_RECORDED), CatalogUse.READ),
    "check": Uses(_LOOK, CatalogUse.READ),
    "history": Uses((*_READ, *_RECORDED), CatalogUse.READ),
    "orphans": _SEARCHING,
    "dropped": _SEARCHING,
    "sql": Uses((*_LOOK, *_RECORDED), CatalogUse.READ),
    "adopt": _MARKING,
    "policy show": _READING,
    "policy check": Uses((), CatalogUse.READ),
    "tag add": _MARKING,
    "tag remove": _MARKING,
    "tag list": _READING,
    "branch drop": _CARRYING,
    "hold add": _MARKING,
    "hold list": _READING,
    "hold release": _MARKING,
    "doctor": Uses((*_READ, *_PURGING), CatalogUse.READ, _INSPECT),
    "iam": Uses((), CatalogUse.NONE),
}
"""What each command does, in the order of its help."""

ACTIONS: dict[str, dict[Verb, tuple[str, ...]]] = {
    "s3": {
        Verb.GET: ("s3:GetObject",),
        Verb.LIST: ("s3:ListBucket",),
        Verb.PUT: ("s3:PutObject",),
        Verb.DELETE: ("s3:DeleteObject",),
        Verb.INSPECT: ("s3:GetBucketVersioning", "s3:GetBucketObjectLockConfiguration"),
    },
    "gs": {
        Verb.GET: ("storage.objects.get",),
        Verb.LIST: ("storage.objects.list",),
        Verb.PUT: ("storage.objects.create",),
        Verb.DELETE: ("storage.objects.delete",),
        Verb.INSPECT: ("storage.buckets.get",),
    },
    "abfs": {
        Verb.GET: ("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read",),
        Verb.LIST: ("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read",),
        Verb.PUT: ("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/write",),
        Verb.DELETE: ("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/delete",),
        Verb.INSPECT: ("Microsoft.Storage/storageAccounts/blobServices/read",),
    },
}
"""What each store calls each verb."""

HELPS = {
    Verb.LIST: "plans remember what manifests name, and open only what is new",
    Verb.DELETE: "claims that have ended, and what was written to learn the store's time, are cleared away",
    Verb.INSPECT: "a bucket that keeps versions or locks objects is noticed before the commit",
}
CATALOG_WORDS = {
    CatalogUse.NONE: "nothing",
    CatalogUse.READ: "read: SELECT on iceberg_tables; on a REST catalog list and load tables",
    CatalogUse.COMMIT: "read and commit: SELECT and UPDATE on iceberg_tables; on a REST catalog list, load and commit",
}


@dataclass(frozen=True, slots=True)
class Places:
    """Where a table's things lie: folders without a slash at the end."""

    metadata: tuple[str, ...]
    files: tuple[str, ...]
    records: tuple[str, ...]

    def of(self, place: Place) -> tuple[str, ...]:
        return {Place.METADATA: self.metadata, Place.FILES: self.files, Place.RECORDS: self.records}[place]


@dataclass(frozen=True, slots=True)
class Grant:
    """One verb on some folders, in the store's own words."""

    verb: Verb
    actions: tuple[str, ...]
    folders: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"verb": self.verb.value, "actions": list(self.actions), "folders": list(self.folders)}


def template(store: str) -> Places:
    """Returns places that speak of no table in particular."""
    home = f"{store}://bucket/table"
    return Places((f"{home}/metadata",), (home,), (f"{home}/_firnline",))


def uses_of(command: str) -> Uses:
    """Returns what a command does. Raises UsageError for a command that nobody knows."""
    if command not in COMMANDS:
        raise UsageError(f"no command {command!r}", hint=f"one of: {', '.join(COMMANDS)}")
    return COMMANDS[command]


def grants(needs: Iterable[Need], places: Places, store: str) -> list[Grant]:
    """Returns the least that allows the needs: each verb once, on the outermost folders it is needed in."""
    wanted = list(needs)
    found = []
    for verb in Verb:
        folders = {folder for need in wanted if need.verb is verb for folder in places.of(need.place)}
        if folders:
            found.append(Grant(verb, ACTIONS[store][verb], tuple(sorted(_outermost(folders)))))
    return found


def _outermost(folders: set[str]) -> Iterator[str]:
    for folder in folders:
        if not any(folder.startswith(other + "/") for other in folders):
            yield folder


def aws_policy(given: Iterable[Grant]) -> dict[str, Any]:
    """Returns the grants as an AWS policy document. Listing is of a bucket, held to its folders by a condition."""
    return {"Version": "2012-10-17", "Statement": [_statement(each) for each in given]}


def _statement(grant: Grant) -> dict[str, Any]:
    where = [parse_location(folder) for folder in grant.folders]
    buckets = [f"arn:aws:s3:::{each.authority}" for each in where]
    said = {"Sid": f"Firnline{grant.verb.value.title()}", "Effect": "Allow", "Action": list(grant.actions)}
    if grant.verb is Verb.INSPECT:
        return {**said, "Resource": sorted(set(buckets))}
    names = [each.path.strip("/") for each in where]
    if grant.verb is Verb.LIST:
        prefixes = [text for name in names for text in (name, f"{name}/*")]
        return {**said, "Resource": sorted(set(buckets)), "Condition": {"StringLike": {"s3:prefix": prefixes}}}
    return {**said, "Resource": [f"{home}/{name}/*" for home, name in zip(buckets, names, strict=True)]}
