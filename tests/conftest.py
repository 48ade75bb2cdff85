"""How the tests are spread over processes: a file's tests stay together, and so do all that share a Spark session."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups each file, so that its module fixtures are built once; a group that a test names itself stands."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
