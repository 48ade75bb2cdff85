"""Placing tables in a REST catalog, whose metadata is written already.

A first table is registered, and of two that register one name the server lets one. To move it on there is no request
that compares: a commit cannot bring in snapshots whose sequence numbers have passed, and registering again with
`overwrite`, where a server knows that, replaces any table. Elsewhere the table is dropped, without its files, and
registered again. So it is looked at right before, and this remains:

1. Two processes see the table at the same metadata.
2. Both move it on, and both are told that they did. The later one stands: what only the other's metadata names is not
   in the table any more, though all its files are there.

A process that moves a table on must hold what keeps the others from it, such as its lease. While the table is dropped
readers see none, for as long as one request takes. If that fails there is none until the same metadata is placed again,
with nothing expected.
"""

from __future__ import annotations

import time

from firnline.catalogs.rest.catalog import Levels, RestCatalog
from firnline.catalogs.rest.http import Reply, Unanswered
from firnline.errors import FirnlineError, NoSuchTable, PermanentStoreError, StoreError, UsageError
from firnline.model.names import written
from firnline.patience import Patience
from firnline.ports.catalogs import SwapOutcome, TableName

_MISSING = 404
_UNSUPPORTED = 406
_TIMEOUT = 408
_CONFLICT = 409
_NOT_IMPLEMENTED = 501
_KNOWS_NO_OVERWRITE = (_UNSUPPORTED, _CONFLICT, _NOT_IMPLEMENTED)
_NONE_THERE = ("NoSuchTableException", "NoSuchNamespaceException")
_PATIENCE = Patience(attempts=4, base_delay_s=0.2, max_delay_s=1.6, budget_s=float("inf"))


class PlacingRestCatalog(RestCatalog):
    """A REST catalog that takes tables whose metadata is written already, where its server can read that."""

    def place_table(self, table: TableName, expected: str | None, metadata: str) -> SwapOutcome:
        """Registers the metadata. With `expected` this is no compare-and-swap: see the race above.

        Raises what the server refuses it with; the table then stands where it stood.
        """
        if not table.namespace:
            raise UsageError(f"a REST catalog has no table without a namespace: {table}", "name a namespace")
        now = self._placed_at(table)
        if now != expected or now == metadata:
            return _outcome(now, metadata)
        try:
            if expected is None:
                self._make_namespaces(table.namespace)
                return self._registered(table, metadata)
            return self._moved(table, expected, metadata)
        except Unanswered:
            return SwapOutcome.UNKNOWN

    def _placed_at(self, table: TableName) -> str | None:
        """Returns which version of the table the catalog has, as the location of its metadata; None if there is no such
        table. Raises if the server cannot read the table, or does not tell that location.
        """
        reply = self.http.read(self.address(table), {"snapshots": "refs"})
        if reply.is_good:
            return self._location_in(reply.body, table)
        if reply.status != _MISSING:
            raise self.refused(reply, f"reading {table}")
        # The same status says that the metadata is missing of a table that is there.
        error = None if reply.error_type in _NONE_THERE else self.missing(table)
        if error is None or isinstance(error, NoSuchTable):
            return None
        raise error

    def _make_namespaces(self, levels: Levels) -> None:
        if self.http.read(self._space(levels)).is_good:
            return
        for depth in range(1, len(levels) + 1):
            space = levels[:depth]
            reply = self.http.post(f"{self._root}/namespaces", {"namespace": list(space), "properties": {}})
            if not reply.is_good and reply.status != _CONFLICT:
                raise self.refused(reply, f"making the namespace {written(space)}")

    def _register(self, table: TableName, metadata: str, overwrite: bool) -> Reply:
        body = {"name": table.name, "metadata-location": metadata, **({"overwrite": True} if overwrite else {})}
        return self.http.post(f"{self._space(table.namespace)}/register", body)

    def _registered(self, table: TableName, metadata: str) -> SwapOutcome:
        """Registers a table that is not there. Sent again after it landed, it is DONE."""
        reply = self._register(table, metadata, overwrite=False)
        if reply.status == _CONFLICT and (now := self._placed_at(table)) is not None:
            return _outcome(now, metadata)
        return self._placed(reply, table)

    def _placed(self, reply: Reply, table: TableName) -> SwapOutcome:
        """Returns what became of a registration. A good answer without the table in it may be anybody's."""
        return SwapOutcome.UNKNOWN if reply.is_good and not reply.tells_table else self._answered(reply, table)

    def _answered(self, reply: Reply, table: TableName) -> SwapOutcome:
        if reply.is_good:
            return SwapOutcome.DONE
        if _is_silent(reply):
            return SwapOutcome.UNKNOWN
        raise self.refused(reply, f"placing {table}")

    def _moved(self, table: TableName, expected: str, metadata: str) -> SwapOutcome:
        reply = self._register(table, metadata, overwrite=True)
        if reply.status not in _KNOWS_NO_OVERWRITE:
            return self._placed(reply, table)
        now = self._placed_at(table)
        if now != expected:
            return _outcome(now, metadata)
        # Never with a purge: the new metadata names the same files.
        dropped = self.http.delete(self.address(table), {"purgeRequested": "false"})
        if dropped.status == _MISSING:
            return SwapOutcome.LOST
        if (outcome := self._answered(dropped, table)) is SwapOutcome.DONE:
            outcome = self._registered_again(table, expected, metadata)
        return outcome

    def _registered_again(self, table: TableName, dropped: str, metadata: str) -> SwapOutcome:
        """Registers what was just dropped, at its new metadata; where that is refused, at the old one.

        It is sent again where no answer comes: until it lands there is no table.
        """
        for pause in _PATIENCE.pauses():
            try:
                outcome = self._registered(table, metadata)
            except FirnlineError as error:
                if isinstance(error, PermanentStoreError) or not isinstance(error, StoreError):
                    raise self._put_back(table, dropped, error) from None
                outcome = SwapOutcome.UNKNOWN
            except Unanswered:
                outcome = SwapOutcome.UNKNOWN
            if outcome is not SwapOutcome.UNKNOWN:
                return outcome
            time.sleep(pause)
        return SwapOutcome.UNKNOWN

    def _put_back(self, table: TableName, dropped: str, refused: FirnlineError) -> FirnlineError:
        """Returns the error to raise, after the table was registered where it stood."""
        try:
            if self._registered(table, dropped) is not SwapOutcome.UNKNOWN:
                return refused
        except (FirnlineError, Unanswered):
            pass
        return StoreError(
            f"{table} is not in its catalog any more: {refused.message}; nor could it be put back",
            f"its files are all there: register it at {dropped}",
        )


def _outcome(now: str | None, metadata: str) -> SwapOutcome:
    return SwapOutcome.DONE if now == metadata else SwapOutcome.LOST


def _is_silent(reply: Reply) -> bool:
    """Tells whether the request may have been served all the same; a proxy says so too, after it has sent it on."""
    return reply.status == _TIMEOUT or (reply.status >= 500 and reply.status != _NOT_IMPLEMENTED)
