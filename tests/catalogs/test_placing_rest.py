"""Placing tables on Iceberg's own servlet, of which each request fails in turn: no table is lost for good."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from firnline.catalogs.rest.placing import PlacingRestCatalog
from firnline.errors import FirnlineError, NoSuchTable, StoreError
from firnline.ports.catalogs import SwapOutcome, TableName
from harness.servers import Server
from harness.servers.proxy import Fault, Proxy, Rule, proxy

from .test_placing import versions_of

pytestmark = pytest.mark.xdist_group("rest")
FAULTS: tuple[Fault, ...] = ("busy", "cut", "drop")


@pytest.fixture
def faulty(own_rest: Server) -> Iterator[Proxy]:
    with proxy(own_rest.url) as between:
        yield between


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries do not wait."""
    monkeypatch.setattr("firnline.catalogs.rest.http.time.sleep", lambda _: None)


@pytest.fixture
def place() -> TableName:
    return TableName("cold", (f"eu_{uuid4().hex[:8]}", "west"), "events")


def at(url: str) -> PlacingRestCatalog:
    return PlacingRestCatalog("cold", {"uri": url})


def stands(catalog: PlacingRestCatalog, table: TableName) -> str | None:
    try:
        return catalog.locate(table)
    except NoSuchTable:
        return None


class From:
    """Picks the requests from a number on, as many as are asked for; the first one is the configuration's."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, method: str, path: str) -> bool:
        self.left -= 1
        return self.left < 0


def outcome_of(catalog: PlacingRestCatalog, table: TableName, expected: str | None, new: str) -> SwapOutcome | None:
    """Returns the outcome; None for an error, which says that nothing was changed."""
    try:
        return catalog.place_table(table, expected, new)
    except StoreError:
        return None


@pytest.mark.full
@pytest.mark.parametrize("times", [1, None])
@pytest.mark.parametrize("fault", FAULTS)
def test_whichever_request_fails_the_table_is_placed_in_the_end(
    own_rest: Server, faulty: Proxy, place: TableName, tmp_path: Path, fault: Fault, times: int | None
) -> None:
    """It stands where it stood or where it should; or nowhere, only if that was called unknown: then it is sent again,
    with nothing expected.
    """
    _, one, two = versions_of(tmp_path)
    sound, reached = at(own_rest.url), set[tuple[SwapOutcome | None, str | None]]()
    for number in range(1, 12):
        table, picks = TableName("cold", (f"{place.namespace[0]}_{number}", "west"), "events"), list[From]()
        for expected, new in ((None, one), (one, two)):
            picks.append(From(number))
            faulty.rules = [Rule(fault, when=picks[-1], times=times)]
            outcome = outcome_of(at(faulty.url), table, expected, new)
            faulty.rules = []
            now = stands(sound, table)
            assert now == new or outcome is not SwapOutcome.DONE
            assert now == expected or outcome in (SwapOutcome.DONE, SwapOutcome.UNKNOWN)
            assert now in (expected, new, None)
            reached.add((outcome, expected if now is None else "there"))
            if now != new:
                assert sound.place_table(table, now, new) is SwapOutcome.DONE
            assert stands(sound, table) == new
        if all(each.left >= 0 for each in picks):  # neither had so many requests, so nothing failed
            break
    assert (SwapOutcome.DONE, "there") in reached
    # Dropped, and not registered again:
    assert ((SwapOutcome.UNKNOWN, one) in reached) is (times is None or fault == "drop"), reached


def test_metadata_that_the_server_cannot_read_leaves_the_table_where_it_stood(
    own_rest: Server, place: TableName, tmp_path: Path
) -> None:
    """The servlet knows no overwrite, so the table is dropped first; and it is put back."""
    first, missing = versions_of(tmp_path)[0], f"file://{tmp_path}/none.metadata.json"
    catalog = at(own_rest.url)
    with pytest.raises(FirnlineError):
        catalog.place_table(place, None, missing)
    assert stands(catalog, place) is None
    assert catalog.place_table(place, None, first) is SwapOutcome.DONE
    with pytest.raises(FirnlineError, match=r"none\.metadata\.json"):
        catalog.place_table(place, first, missing)
    assert stands(catalog, place) == first


def test_no_file_goes_when_a_table_moves_on(own_rest: Server, place: TableName, tmp_path: Path) -> None:
    empty, one, two = versions_of(tmp_path)
    files = sorted(tmp_path.rglob("*"))
    catalog = at(own_rest.url)
    for expected, new in ((None, one), (one, two), (two, empty)):
        assert catalog.place_table(place, expected, new) is SwapOutcome.DONE
    assert sorted(tmp_path.rglob("*")) == files
