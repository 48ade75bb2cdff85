from __future__ import annotations

from collections.abc import Iterator

import pytest

from firnline.catalogs.rest.placing import PlacingRestCatalog
from harness.servers import Missing, Server, rest
from harness.servers.fixtures import NOT_HERE


@pytest.fixture(scope="session")
def servlet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Iceberg's own REST servlet for these tests alone, with its tables in local files: they look at all of it."""
    try:
        with rest(tmp_path_factory.mktemp("rest")) as server:
            yield server
    except Missing as missing:
        pytest.skip(f"{NOT_HERE}{missing}")


@pytest.fixture
def own_rest(servlet: Server) -> Iterator[Server]:
    """The same server for one test: its tables go before their files do, which others would miss. Each run asks every
    namespace for its tables, and each of these whether it shares files: what others left would make it slow.
    """
    catalog = PlacingRestCatalog("tidy", servlet.settings)
    tables, spaces = set(catalog.tables()), set(catalog._namespaces())
    yield servlet
    for table in set(catalog.tables()) - tables:
        assert catalog.http.delete(catalog.address(table), {"purgeRequested": "false"}).is_good
    for space in sorted(set(catalog._namespaces()) - spaces, key=len, reverse=True):
        assert catalog.http.delete(catalog._space(space), {}).is_good
