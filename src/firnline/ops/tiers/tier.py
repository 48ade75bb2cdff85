"""A tier as an archive works with it: where its files go, who copies them, and the table that they make there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from shlex import quote
from typing import TYPE_CHECKING

from firnline.errors import NoSuchTable, OutcomeUnknown, PolicyError, RefusedForSafety, UnsupportedFormat
from firnline.journal.events import RunState
from firnline.model.files import FileKind
from firnline.model.locations import within
from firnline.ops.runs.decision import policy_in_force
from firnline.plans.request import Request
from firnline.policy.parse import Section
from firnline.ports.catalogs import Catalog, PlacesTables, SwapOutcome, TableName
from firnline.ports.formats import State, TableFormat
from firnline.ports.stores import ReadWrite

if TYPE_CHECKING:
    from firnline.journal.runs import Run
    from firnline.ops.tiers.bundling import Bundles
    from firnline.policy.tiers import TierPolicy
    from firnline.ports.copying import Copy, CopyOutcome, Stored, Verify
    from firnline.ports.listings import ListRanges
    from firnline.ports.packing import TransferMany
    from firnline.ports.relocating import HandsOver


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier, for the live table of one `uuid`. `table` is what its history is called there; `format` and `store` are
    the tier's; `copy` copies byte for byte from the live store, `back` the other way, `verify` looks at copies again,
    `many` returns who spreads so many of them over the engine. `recorded` returns the runs of a table there: it may be
    under policy itself. `bundles` hold its leaf files, where it has such.

    Nothing here can delete.
    """

    policy: TierPolicy
    uuid: str
    table: TableName
    catalog: Catalog
    store: ReadWrite
    format: TableFormat
    copy: Copy
    back: Copy
    verify: Verify
    many: Callable[[int], TransferMany]
    ranges: ListRanges
    recorded: Callable[[TableName, State], list[Run]]
    bundles: Bundles | None = None

    def following(self, location: str) -> Tier:
        """Returns the tier with the name that it has for the history of the live table: that one's, or the one that it
        had before it was renamed. Only a catalog whose listing tells where tables lie is searched for that. What came
        by way of another tier lies deeper below the root, under the same path.
        """
        from firnline.tiers.belonging import is_history_of
        from firnline.tiers.places import TierPlaces

        if self._named() is not None:
            return self
        root = self.policy.root
        folder = f"{TierPlaces(root).place(location).removeprefix(root).rstrip('/')}/"
        for name, metadata in self.catalog.pointers():
            if metadata and within(root, metadata) and folder in metadata:
                found = self.format.load(str(name), metadata)
                if is_history_of(found.uuid, found.properties, self.uuid):
                    return replace(self, table=name)
        return self

    def load(self) -> State | None:
        """Returns the table that holds the history of the live table; None where nothing was handed over yet. Raises
        RefusedForSafety where the name is taken: by another table's history, or by any other table.
        """
        from firnline.tiers.belonging import is_history_of

        found = self._named()
        if found is not None and not is_history_of(found.uuid, found.properties, self.uuid):
            raise RefusedForSafety(
                f"{self.table} does not hold the history of the table with uuid {self.uuid}",
                hint="a table that was made again is another one: rename the one in the tier, then try again",
            )
        return found

    def find(self) -> State | None:
        """Returns the same for who only looks: where the name is taken, nothing of this table is there."""
        from firnline.tiers.belonging import is_history_of

        found = self._named()
        return found if found is not None and is_history_of(found.uuid, found.properties, self.uuid) else None

    def _named(self) -> State | None:
        try:
            location = self.catalog.locate(self.table)
        except NoSuchTable:
            return None
        return self.format.load(str(self.table), location)

    @property
    def leaves(self) -> frozenset[FileKind]:
        """The kinds of files that go into bundles, where the tier has such."""
        from firnline.tiers.places import TierPlaces

        places = TierPlaces(self.policy.root)
        return hands_over(self.format, str(self.table)).relocation(places, self.store).leaves

    def refuse_unbundled(self) -> None:
        """Raises PolicyError where files of this history lie in bundles, and the policy says of none any more: nothing
        would be found there.
        """
        from firnline.tiers.bundles.index import has_bundles

        if self.bundles is None and has_bundles(self.store, self.policy.root, self.uuid):
            raise PolicyError(
                f"files of {self.table} lie in bundles, and the tier {self.policy.name} has none by its policy",
                hint="put `bundle:` back into firnline.yaml, or the class that it had; nothing was changed",
            )

    def damaged(self, copies: list[Stored]) -> list[CopyOutcome]:
        """Returns those that are not any more what they were seen to be, with what is wrong."""
        from firnline.ports.copying import CopyFate

        outcomes = self.many(len(copies)).verify_many(copies, self.verify)
        return [each for each in outcomes if each.fate is CopyFate.FAILED]

    def purges(self) -> dict[str, RunState]:
        """Returns the runs of the tier's own table, which hand its snapshots on to the next tier. Raises
        RefusedForSafety while one of them deletes files.
        """
        there = self.load()
        runs = [] if there is None else self.recorded(self.table, there)
        for run in runs:
            if run.state is RunState.PURGING:
                raise RefusedForSafety(
                    f"{run.id} deletes files of {self.table}, perhaps such as are handed over now",
                    hint=f"`firnline resume {quote(str(self.table))}` ends that; then `firnline resume` goes on here",
                )
        return {str(run.id): run.state for run in runs}

    def place(self, before: State | None, metadata: str) -> bool:
        """Tells whether the tier's table has this metadata now; not if it moved since `before` was read."""
        if not isinstance(self.catalog, PlacesTables):
            raise UnsupportedFormat(
                f"the catalog {self.catalog.name} takes no tables, so it cannot be a tier",
                hint="a tier is found in a catalog of type sql or rest",
            )
        outcome = self.catalog.place_table(self.table, None if before is None else before.fence, metadata)
        if outcome is not SwapOutcome.UNKNOWN:
            return outcome is SwapOutcome.DONE
        found = self.load()
        if found is not None and found.fence == metadata:
            return True
        raise OutcomeUnknown(
            f"the catalog {self.catalog.name} gave no answer about {self.table}", hint="`firnline resume` settles it"
        )


OpenTier = Callable[[TableName, str, str], Tier]
"""Opens a tier by its name, for a table that holds the history of a live one: that one's uuid comes last."""


def tier_of(state: State, name: TableName, config: Section, request: Request) -> TierPolicy | None:
    """Returns the tier that the table's policy names; None where it names none. Raises PolicyError where the file has
    no such tier.
    """
    from firnline.policy.tiers import tier_named

    said = policy_in_force(state, name, config, request).archive.value
    return None if said is None else tier_named(config.tiers, said)


def hands_over(table_format: TableFormat, table: str) -> HandsOver:
    """Returns the format. Raises UnsupportedFormat where its snapshots cannot be handed to a tier."""
    from firnline.ports.relocating import HandsOver

    if isinstance(table_format, HandsOver):
        return table_format
    raise UnsupportedFormat(
        f"{table}: snapshots of {table_format.name} tables cannot be handed to a tier",
        hint="write `archive: off` for this table; nothing was changed",
    )
