"""PyIceberg's catalogs, with pointers that follow every commit made through them.

>>> from firnline.publishing_catalogs import PublishingSqlCatalog
>>> catalog = PublishingSqlCatalog("lake", uri="sqlite:///catalog.db")    # doctest: +SKIP
>>> catalog.load_table("sales.customer").append(rows)                     # doctest: +SKIP

The catalog must be configured for firnline under the same name, and a policy must ask for pointers. A pointer that
cannot be written is warned of and does not fail the commit: `firnline pointers sync` writes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog

from firnline.lake import open_lake
from firnline.ops.pointers.inline import warn_of_unpublished
from firnline.ports.catalogs import TableName

if TYPE_CHECKING:
    from pyiceberg.table import CommitTableResponse, Table


class _Publishing:
    """Publishes after whatever takes a table to another state or name."""

    name: str

    def commit_table(self, table: Table, *args: Any, **options: Any) -> CommitTableResponse:
        answer: CommitTableResponse = super().commit_table(table, *args, **options)  # type: ignore[misc]
        self._publish(table.name())
        return answer

    def create_table(self, *args: Any, **options: Any) -> Table:
        return self._published(super().create_table(*args, **options))  # type: ignore[misc]

    def register_table(self, *args: Any, **options: Any) -> Table:
        return self._published(super().register_table(*args, **options))  # type: ignore[misc]

    def rename_table(self, *args: Any, **options: Any) -> Table:
        return self._published(super().rename_table(*args, **options))  # type: ignore[misc]

    def _published(self, table: Table) -> Table:
        self._publish(table.name())
        return table

    def _publish(self, parts: tuple[str, ...]) -> None:
        name = TableName.of_parts(self.name, parts)
        warn_of_unpublished(name, lambda: open_lake().pointers.publish(name))


class PublishingSqlCatalog(_Publishing, SqlCatalog):
    """A SQL catalog whose tables' pointers follow its commits."""


class PublishingRestCatalog(_Publishing, RestCatalog):
    """A REST catalog whose tables' pointers follow the commits that are made through this client."""
