"""What each command must be allowed on one table, or on any, in every store's own words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from firnline.errors import UsageError
from firnline.history.names import home_of, pointer_of
from firnline.journal.audit.entries import audit_root
from firnline.model.locations import parse_location
from firnline.ops.looking.command_needs import CatalogUse, Need, PlaceKind, Uses, Verb, uses_of
from firnline.ops.runs.decision import policy_in_force
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.tier import tier_of
from firnline.plans.request import Request
from firnline.policy.tiers import TierPolicy, tier_named
from firnline.ports.formats import State, UndoWindow
from firnline.tiers.belonging import history_of
from firnline.tiers.bundles.index import bundles_folder
from firnline.tiers.places import TierPlaces

ACTIONS: dict[str, dict[Verb, tuple[str, ...]]] = {
    "s3": {
        Verb.GET: ("s3:GetObject",),
        Verb.LIST: ("s3:ListBucket",),
        Verb.PUT: ("s3:PutObject",),
        Verb.DELETE: ("s3:DeleteObject",),
        Verb.INSPECT: ("s3:GetBucketVersioning", "s3:GetBucketObjectLockConfiguration"),
        Verb.RESTORE: ("s3:RestoreObject",),
    },
    "gs": {
        Verb.GET: ("storage.objects.get",),
        Verb.LIST: ("storage.objects.list",),
        Verb.PUT: ("storage.objects.create",),
        Verb.DELETE: ("storage.objects.delete",),
        Verb.INSPECT: ("storage.buckets.get",),
        Verb.RESTORE: (),
    },
    "abfs": {
        Verb.GET: ("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read",),
        Verb.LIST: ("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read",),
        Verb.PUT: ("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/write",),
        Verb.DELETE: ("Microsoft.Storage/storageAccounts/blobServices/containers/blobs/delete",),
        Verb.INSPECT: ("Microsoft.Storage/storageAccounts/blobServices/read",),
        Verb.RESTORE: (),
    },
}
"""What each store calls each verb."""

HELPS = {
    Verb.PUT: "an unfinished run that is on no list is entered again",
    Verb.DELETE: "claims and pointers that have ended, and what told the store's time, are cleared away",
    Verb.INSPECT: "a bucket that keeps versions or locks objects is noticed before the commit",
}
CATALOG_WORDS = {
    CatalogUse.NONE: "nothing",
    CatalogUse.READ: "read: SELECT on iceberg_tables; on a REST catalog list and load tables",
    CatalogUse.COMMIT: "read and commit: SELECT and UPDATE on iceberg_tables; on a REST catalog list, load and commit",
}


_COMMITS_TOO = (
    "read: SELECT on iceberg_tables; on a REST catalog list, load and commit, for it commits runs that waited to be "
    "called off (--table TABLE shows what that needs)"
)


@dataclass(frozen=True, slots=True)
class TableFolders:
    """Where a table's things lie: folders without a slash at the end."""

    metadata: tuple[str, ...]
    files: tuple[str, ...]
    records: tuple[str, ...]
    unfinished: tuple[str, ...] = ()
    tier: tuple[str, ...] = ()
    deep: tuple[str, ...] = ()
    audit: tuple[str, ...] = ()

    def of(self, place: PlaceKind) -> tuple[str, ...]:
        return {
            PlaceKind.METADATA: self.metadata,
            PlaceKind.FILES: self.files,
            PlaceKind.RECORDS: self.records,
            PlaceKind.UNFINISHED: self.unfinished,
            PlaceKind.TIER: self.tier,
            PlaceKind.DEEP: self.deep,
            PlaceKind.AUDIT: self.audit,
        }[place]


@dataclass(frozen=True, slots=True)
class Grant:
    """One verb on some folders, in the store's own words."""

    verb: Verb
    actions: tuple[str, ...]
    folders: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"verb": self.verb.value, "actions": list(self.actions), "folders": list(self.folders)}


def template(store: str) -> TableFolders:
    """Returns places that speak of no table in particular."""
    home = f"{store}://bucket/table"
    return TableFolders((f"{home}/metadata",), (home,), (f"{home}/_firnline",), tier=(f"{store}://tier/bucket/table",))


def grants(needs: Iterable[Need], places: TableFolders, store: str) -> list[Grant]:
    """Returns the least that allows the needs: each verb once, on the outermost folders it is needed in."""
    wanted = list(needs)
    found = []
    for verb in Verb:
        folders = {folder for need in wanted if need.verb is verb for folder in places.of(need.place)}
        if folders and ACTIONS[store][verb]:
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


_SCHEMES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "abfs": "abfs", "abfss": "abfs", "az": "abfs"}


@dataclass(frozen=True, slots=True)
class Permissions:
    """The least that a command needs, and what helps it further. `undo`: when runs of the table can be undone; None
    where it is for no table in particular.
    """

    command: str
    store: str
    uses: Uses
    needed: tuple[Grant, ...]
    helpful: tuple[Grant, ...]
    undo: UndoWindow | None = None

    @property
    def catalog(self) -> str:
        is_general = self.command == "purge" and self.undo is None
        return _COMMITS_TOO if is_general else CATALOG_WORDS[self.uses.catalog]

    @property
    def policy(self) -> dict[str, Any] | None:
        """The AWS policy document; None where there is nothing to allow, or the store is another one."""
        return aws_policy(self.needed) if self.store == "s3" and self.needed else None

    def to_json(self) -> dict[str, Any]:
        return {
            "command": self.command,
            "store": self.store,
            "needed": [each.to_json() for each in self.needed],
            "helpful": [each.to_json() for each in self.helpful],
            "catalog": self.catalog,
            "policy": self.policy,
        }


def permissions(command: str, store: str, work: TableContext | None) -> Permissions:
    """Returns what the command needs: on this very table, or on a table that stands for any."""
    if store not in ACTIONS:
        raise UsageError(f"unknown store {store!r}", hint=f"one of: {', '.join(ACTIONS)}")
    state = None if work is None else work.source.load()
    undo = None if state is None else state.capabilities.undo
    uses = uses_of(command, undo or UndoWindow.AFTER_COMMIT)
    places = template(store) if work is None or state is None else places_of(work, state)
    if work is None and command.startswith("audit "):
        places = replace(places, audit=(audit_root(f"{store}://bucket/audit"),))
    chosen = store if work is None else store_of(places)
    of_tier = uses.tier if command in _OF_TIERS or (work is not None and places.tier) else ()
    needed = tuple(grants((*uses.needs, *of_tier, *uses.deep), places, chosen))
    helpful = tuple(grants((each for each in uses.helps if each not in uses.needs), places, chosen))
    return Permissions(command, chosen, uses, needed, helpful, undo)


_OF_TIERS = ("archive", "erase", "restore", "tiers")


def _tier_folders(work: TableContext, state: State) -> tuple[str, ...]:
    """Returns the folders of the table in its tier; none where that is another kind of store, which has words of its
    own.
    """
    tier = tier_of(state, work.source.name, work.config, Request())
    return () if tier is None else _folders_in(tier, state)


def _deep_folders(work: TableContext, state: State) -> tuple[str, ...]:
    """Returns every tier whose files sleep in bundles, as a whole: what came by way of another tier lies elsewhere in
    it than what came from here.
    """
    others = (tier_named(work.config.tiers, each) for each in work.config.tiers if each != work.source.name.catalog)
    scheme = parse_location(state.location).scheme
    return tuple(tier.root for tier in others if tier.bundle is not None and parse_location(tier.root).scheme == scheme)


def _folders_in(tier: TierPolicy, state: State) -> tuple[str, ...]:
    if parse_location(tier.root).scheme != parse_location(state.location).scheme:
        return ()
    places = tuple(TierPlaces(tier.root).place(folder.rstrip("/")) for folder in state.owned)
    packed = bundles_folder(tier.root, history_of(state.uuid, state.properties))
    return places if tier.bundle is None else (*places, packed)


def places_of(work: TableContext, state: State) -> TableFolders:
    """Returns the folders of this table's metadata, files, run records, tiers and audit log.

    A history lies in the table's own folder, wherever the runs are recorded: it counts if there is one or will be.
    """
    folders = tuple(folder.rstrip("/") for folder in state.owned)
    kept = policy_in_force(state, work.source.name, work.config, Request()).history.value
    remembers = pointer_of(state) is not None or kept is not None
    history = (home_of(state),) if remembers else ()
    root, *lists = (folder.rstrip("/") for folder in work.own_folders(state))
    metadata, tier = (state.fence.rpartition("/")[0],), _tier_folders(work, state)
    deep, audit = _deep_folders(work, state), _audit_folders(work, state)
    return TableFolders(metadata, folders, (root, *history), tuple(lists), tier, deep, audit)


def _audit_folders(work: TableContext, state: State) -> tuple[str, ...]:
    """Returns the folder of the audit log; none if no log is kept, or if it is in another kind of store, which has
    words of its own.
    """
    said = work.config.settings.get("audit")
    is_here = said is not None and parse_location(said.value).scheme == parse_location(state.location).scheme
    return (audit_root(said.value),) if said is not None and is_here else ()


def store_of(places: TableFolders) -> str:
    """Returns the store that a table lies in. Raises UsageError for local files: those have owners, not policies."""
    scheme = parse_location(places.metadata[0]).scheme
    if scheme not in _SCHEMES:
        raise UsageError(
            f"the table lies in {scheme}://, which knows no such permissions",
            hint="the user who runs the command must own the table's folder; leave --table out to see an example",
        )
    return _SCHEMES[scheme]
