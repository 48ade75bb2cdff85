"""How the tests are spread over processes: a file's tests stay together, and so do all that share a Spark session."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

_COUNT = "count: "


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups each file, so that its module fixtures are built once; a group that a test names itself stands."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints what tests counted: properties named `count: HEADING`, whose values are numbers by line."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for report in [each for reports in terminalreporter.stats.values() for each in reports]:
        for name, value in getattr(report, "user_properties", []):
            if name.startswith(_COUNT) and report.when == "call":
                sums[name.removeprefix(_COUNT)].update(value)
    for heading, lines in sums.items():
        terminalreporter.section(heading)
        for line, number in lines.items():
            terminalreporter.write_line(f"{number:9,}  {line}")
