"""What each command does to objects and catalogs: one table of verbs, from which each store's own words are derived."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from firnline.errors import UsageError
from firnline.ports.formats import UndoWindow


class Verb(StrEnum):
    GET = "get"
    LIST = "list"
    PUT = "put"
    DELETE = "delete"
    INSPECT = "inspect"
    RESTORE = "restore"


class PlaceKind(StrEnum):
    METADATA = "metadata"
    FILES = "files"
    RECORDS = "records"
    UNFINISHED = "unfinished"
    TIER = "tier"
    DEEP = "deep"
    AUDIT = "audit"


class CatalogUse(StrEnum):
    NONE = "none"
    READ = "read"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True)
class Need:
    verb: Verb
    place: PlaceKind


@dataclass(frozen=True, slots=True)
class Uses:
    """What a command does. Without a need it fails before it changes anything; without a help it works, with less.
    `tier` are further needs where the table's policy names one.
    """

    needs: tuple[Need, ...]
    catalog: CatalogUse
    helps: tuple[Need, ...] = ()
    tier: tuple[Need, ...] = ()
    deep: tuple[Need, ...] = ()


_READ = (Need(Verb.GET, PlaceKind.METADATA),)
_LOOK = (Need(Verb.GET, PlaceKind.FILES),)
_WRITE = (Need(Verb.PUT, PlaceKind.METADATA),)
_RECORDED = (Need(Verb.LIST, PlaceKind.RECORDS), Need(Verb.GET, PlaceKind.RECORDS))
_RECORD = (*_RECORDED, Need(Verb.PUT, PlaceKind.RECORDS))
_TIDY = (Need(Verb.DELETE, PlaceKind.RECORDS),)
_ENTER = (Need(Verb.PUT, PlaceKind.UNFINISHED),)
_STRIKE = (Need(Verb.DELETE, PlaceKind.UNFINISHED),)
_FOLLOW = (Need(Verb.LIST, PlaceKind.UNFINISHED), Need(Verb.GET, PlaceKind.UNFINISHED))
_PURGE = (Need(Verb.DELETE, PlaceKind.FILES),)
_SEARCH = (Need(Verb.LIST, PlaceKind.FILES),)
_DECIDE = (*_READ, *_SEARCH)
"""Pointers in the table's folder keep snapshots: who may not list it cannot tell whether there are any."""
_IN_TIER = (Need(Verb.GET, PlaceKind.TIER), Need(Verb.LIST, PlaceKind.TIER))
_TO_TIER = (*_LOOK, *_IN_TIER, Need(Verb.PUT, PlaceKind.TIER))
"""Nothing is deleted in a tier, except for what is erased."""
_SLEEPING = (Need(Verb.GET, PlaceKind.DEEP), Need(Verb.LIST, PlaceKind.DEEP))
_WAKE = (*_SLEEPING, Need(Verb.PUT, PlaceKind.DEEP), Need(Verb.RESTORE, PlaceKind.DEEP))
"""Who asks for what sleeps in an archive is written down there."""
_FROM_TIER = (*_TO_TIER, Need(Verb.DELETE, PlaceKind.TIER))
_FROM_BUNDLES = (*_WAKE, Need(Verb.DELETE, PlaceKind.DEEP))
_INSPECT = (Need(Verb.INSPECT, PlaceKind.FILES),)
_AUDITED = (Need(Verb.LIST, PlaceKind.AUDIT), Need(Verb.GET, PlaceKind.AUDIT))
_AUDIT = (*_AUDITED, Need(Verb.PUT, PlaceKind.AUDIT))
"""Where an audit log is configured. Nothing of it is ever written over or deleted."""

_READING = Uses(_READ, CatalogUse.READ)
_TELL_TIME = (Need(Verb.PUT, PlaceKind.RECORDS), Need(Verb.GET, PlaceKind.RECORDS))
_MARKING = Uses((*_READ, *_WRITE, *_TELL_TIME), CatalogUse.COMMIT, _TIDY)
_CARRYING = Uses(
    (*_DECIDE, *_WRITE, *_RECORD, *_TIDY, *_PURGE, *_ENTER, *_STRIKE, *_AUDIT), CatalogUse.COMMIT, _INSPECT, _TO_TIER
)
_PURGING = (*_RECORD, *_TIDY, *_PURGE)
_SEARCHING = Uses((*_LOOK, *_SEARCH, *_PURGING, *_ENTER, *_STRIKE, *_AUDIT), CatalogUse.READ, _INSPECT)
_PUBLISHING = Uses((*_LOOK, *_SEARCH, Need(Verb.PUT, PlaceKind.FILES)), CatalogUse.READ, _PURGE)
"""Pointers lie in the table's folder. Without the help those of an earlier name stay when their time is over."""

COMMANDS: dict[str, Uses] = {
    "tables": Uses((), CatalogUse.READ),
    "plan": Uses(_DECIDE, CatalogUse.READ),
    "graph": Uses(_DECIDE, CatalogUse.READ),
    "report": Uses((*_DECIDE, *_RECORDED, *_FOLLOW), CatalogUse.READ, (), _IN_TIER),
    "serve": Uses((*_CARRYING.needs, *_LOOK, *_FOLLOW), CatalogUse.COMMIT, _INSPECT, _TO_TIER),
    "why": Uses((*_DECIDE, *_RECORDED), CatalogUse.READ),
    "expire": _CARRYING,
    "commit": _CARRYING,
    "approve": Uses((*_READ, *_RECORD, *_AUDIT), CatalogUse.READ),
    "purge": Uses((*_DECIDE, *_PURGING, *_FOLLOW, *_STRIKE, *_AUDIT), CatalogUse.READ, (*_INSPECT, *_ENTER), _IN_TIER),
    "undo": Uses((*_LOOK, *_WRITE, *_RECORD, *_AUDIT), CatalogUse.COMMIT, (*_TIDY, *_STRIKE)),
    "resume": Uses((*_CARRYING.needs, *_FOLLOW), CatalogUse.COMMIT, _INSPECT, _TO_TIER),
    "runs": Uses((*_READ, *_RECORDED, *_FOLLOW), CatalogUse.READ),
    "check": Uses((*_LOOK, *_SEARCH), CatalogUse.READ),
    "history": Uses((*_READ, *_RECORDED), CatalogUse.READ),
    "orphans": _SEARCHING,
    "dropped": _SEARCHING,
    "sql": Uses((*_LOOK, *_SEARCH, *_RECORDED), CatalogUse.READ),
    "adopt": _MARKING,
    "policy show": _READING,
    "policy check": Uses((), CatalogUse.READ),
    "policy schema": Uses((), CatalogUse.NONE),
    "tag add": _MARKING,
    "tag remove": _MARKING,
    "tag list": _READING,
    "branch drop": _CARRYING,
    "hold add": _MARKING,
    "hold list": _READING,
    "hold release": _MARKING,
    "pointers sync": _PUBLISHING,
    "pointers watch": _PUBLISHING,
    "pointers listen": _PUBLISHING,
    "pointers resolve": Uses((*_LOOK, *_SEARCH), CatalogUse.READ),
    "archive": Uses((*_DECIDE, *_RECORD, *_TIDY), CatalogUse.READ, (), _TO_TIER),
    "restore": Uses(
        (*_DECIDE, *_RECORD, *_TIDY, Need(Verb.PUT, PlaceKind.FILES)), CatalogUse.COMMIT, (), _IN_TIER, _WAKE
    ),
    "tiers": Uses((*_LOOK, *_RECORDED), CatalogUse.READ, (), _IN_TIER, _SLEEPING),
    "erase": Uses((*_CARRYING.needs, *_LOOK), CatalogUse.COMMIT, _INSPECT, _FROM_TIER, _FROM_BUNDLES),
    "worker": Uses(
        (*_CARRYING.needs, *_LOOK, *_FOLLOW, Need(Verb.PUT, PlaceKind.FILES)), CatalogUse.COMMIT, _INSPECT, _TO_TIER
    ),
    "audit show": Uses(_AUDITED, CatalogUse.NONE),
    "audit verify": Uses(_AUDITED, CatalogUse.NONE),
    "doctor": Uses((*_READ, *_PURGING), CatalogUse.READ, _INSPECT),
    "iam": Uses((), CatalogUse.NONE),
}
"""What each command does, in the order of its help."""


def uses_of(command: str, undo: UndoWindow = UndoWindow.AFTER_COMMIT) -> Uses:
    """Returns what a command does, on a table that can be undone then. Raises UsageError for a command that nobody
    knows. Where a run waits before its commit, who purges commits it, as `resume` does.
    """
    if command not in COMMANDS:
        raise UsageError(f"no command {command!r}", hint=f"one of: {', '.join(COMMANDS)}")
    commits_too = command == "purge" and undo is UndoWindow.BEFORE_COMMIT
    return COMMANDS["resume" if commits_too else command]
