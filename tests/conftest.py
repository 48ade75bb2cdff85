"""How the tests are spread over processes: a file's tests stay together, and so do all that share a Spark session."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from firnline.spark.jvm.classes import BRIEF, LAUNCHER_OPTIONS, OPTIONS
from firnline.testing.folders import quick
from harness.lanes import by_lane, left_out
from harness.servers.spark_classes import jvm_options

if TYPE_CHECKING:
    from tests.tiers.java_spark import JavaSpark

pytest_plugins = ["harness.servers.fixtures"]
_COUNT = "count: "
_ROOM = 3 << 30  # what a session's tables, servers and Spark's shuffles take at most, with a margin
_MEMORY = "/dev/shm"


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    with quick(tmp_path) as folder:
        yield folder


@pytest.fixture(scope="session")
def java_session() -> Iterator[JavaSpark]:
    """Spark with Iceberg 1.12.0 in a JVM of this worker's own: tests that ask for it share the group `tiers-spark`."""
    from tests.tiers.java_spark import java_spark

    with java_spark() as session:
        yield session


@pytest.fixture(autouse=True)
def no_session_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark session that another test of this process left running is not this test's: `auto` does not see it."""
    monkeypatch.setattr("firnline.app.engines.is_active", lambda: False)


_LEFT = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Makes every plan of a test remember in a folder of this session, and every run seal its record with a secret of
    it: never in the home of whoever runs it.
    """
    _work_in_memory()
    os.environ["FIRNLINE_CACHE"] = tempfile.mkdtemp(prefix="firnline-units-")
    os.environ["FIRNLINE_CACHE_KEY"] = "for the time of this test session"
    os.environ.setdefault(OPTIONS, jvm_options())
    os.environ.setdefault(LAUNCHER_OPTIONS, BRIEF)
    os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="firnline-config-")
    _choose_examples()
    _parse_settings_once()
    _work_out_metadata_once()


def _choose_examples() -> None:
    """Says how many examples Hypothesis makes where a test does not. How quickly it makes them is no test's matter: on
    two cores that several processes share, one of a few letters took a second.
    """
    slow = [HealthCheck.too_slow]
    settings.register_profile("lane", max_examples=by_lane(50, 50, 100), suppress_health_check=slow)
    settings.load_profile("lane")


def _work_in_memory() -> None:
    """Has temporary folders lie in memory where there is much room: every record and every commit is synced to its
    disk, and half of what tests of real tables take is to wait for that. TMPDIR says otherwise.
    """
    if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and _is_roomy(_MEMORY):
        os.environ["TMPDIR"], tempfile.tempdir = _MEMORY, None


def _is_roomy(folder: str) -> bool:
    """Tells whether tests fit in a folder of memory, beside Spark: its own size may be all of the machine's memory.
    Programs are put there too.
    """
    programs_run = not os.statvfs(folder).f_flag & os.ST_NOEXEC
    meminfo = Path("/proc/meminfo").read_text(encoding="ascii") if os.path.exists("/proc/meminfo") else ""
    available = re.search(r"^MemAvailable: +(\d+) kB", meminfo, re.MULTILINE)
    unused = min(shutil.disk_usage(folder).free, int(available[1]) << 10 if available else 0)
    return programs_run and unused > 3 * _ROOM


def _parse_settings_once() -> None:
    """Has PyIceberg parse each text of a configuration once. It parses its file for each table that it opens and each
    commit, slowly: that is a tenth of what tests take. The answer depends on the text alone.
    """
    from pyiceberg.utils import config

    parser = config.strictyaml
    config.strictyaml = SimpleNamespace(load=lru_cache(parser.load))  # type: ignore[assignment]


def _work_out_metadata_once() -> None:
    """Has a transaction of PyIceberg work out its metadata once for each change. It does so whenever it is asked, some
    twenty times a commit, and copies all of it each time: a quarter of what tests take that build tables.
    """
    from pyiceberg.table import Transaction

    work_out = Transaction.table_metadata.fget
    assert work_out is not None

    def known(transaction: Any) -> Any:
        of = transaction._table.metadata, transaction._updates
        before = transaction.__dict__.get("_known")
        if before is None or any(one is not other for one, other in zip(before[0], of, strict=True)):
            before = transaction.__dict__["_known"] = (of, work_out(transaction))
        return before[1]

    Transaction.table_metadata = property(known)  # type: ignore[method-assign, assignment]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Ends the session at once if the disk is nearly full: else thousands of tests fail, each with another error."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free < _ROOM:
        pytest.exit(f"{folder} has {free >> 20} MiB left, the tests need {_ROOM >> 20}: make room", returncode=3)


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(os.environ["FIRNLINE_CACHE"], ignore_errors=True)
    shutil.rmtree(os.environ["XDG_CONFIG_HOME"], ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Groups each file, so that its module fixtures are built once; a group that a test names itself stands. The long
    groups come first, for else the other processes would wait for them at the end. xdist reads the groups in the same
    hook, so this comes before; `--no-loadscope-reorder` keeps it from an order of its own, by the number of tests. What
    only the long lane runs is left out, and counted.
    """
    left = left_out(items)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left])
    config.stash[_LEFT] = len(left)
    items[:] = [item for item in items if item.nodeid not in left]
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        groups[_group_of(item)].append(item)
    items[:] = [item for group in sorted(groups.values(), key=_cost) for item in group]


def _group_of(item: pytest.Item) -> str:
    """Returns the group of a test, which is its file's where none is named."""
    if item.get_closest_marker("xdist_group") is None:
        item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    named = item.get_closest_marker("xdist_group")
    assert named is not None
    return str(named.args[0])


def _cost(group: list[pytest.Item]) -> tuple[int, int]:
    """Returns what sorts a group before those that take less: Spark takes longer than a server or what tests of several
    files share, and the pure tests fill what is left at the end. Just before them come those of a server that
    a bare machine builds beside the tests, for minutes: a process that asked for it early would only wait.
    """
    if any(item.get_closest_marker("spark") for item in group):
        rank = 0
    elif any(map(_needs_versitygw, group)):
        rank = 3
    elif len({item.path for item in group}) > 1 or any("server" in _fixtures(item) for item in group):
        rank = 1
    else:
        rank = 4 if all(item.nodeid.startswith("tests/unit/") for item in group) else 2
    return rank, -len(group)


def _needs_versitygw(item: pytest.Item) -> bool:
    return any("versitygw" in each.lower() for each in (item.nodeid, *_fixtures(item)))


def _fixtures(item: pytest.Item) -> Sequence[str]:
    found: Sequence[str] = getattr(item, "fixturenames", ())
    return found


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hands what was left out to the process that prints the summary, where several run tests."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = session.config.stash.get(_LEFT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes it over: every process collects the same."""
    node.config.stash[_LEFT] = getattr(node, "workeroutput", {}).get("left", 0)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints what tests counted, which could not run, and how many only the long lane runs."""
    _print_counts(terminalreporter)
    _print_missing(terminalreporter)
    left = terminalreporter.config.stash.get(_LEFT, 0)
    if left:
        terminalreporter.write_line(f"{left} cases are run by `make test-full` alone")


def _print_missing(terminalreporter: Any) -> None:
    """Prints how many tests had no server to run on, by the reason: a green session must not hide them."""
    from harness.servers.fixtures import NOT_HERE

    reasons = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", [])]
    missing = Counter(each.partition(NOT_HERE)[2] for each in reasons if NOT_HERE in each)
    if missing:
        terminalreporter.section("not run here", yellow=True)
    for reason, number in missing.items():
        terminalreporter.write_line(f"{number:9,}  tests: {reason}", yellow=True)


def _print_counts(terminalreporter: Any) -> None:
    """Prints the sums of properties named `count: HEADING`, whose values are numbers by line."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for report in [each for reports in terminalreporter.stats.values() for each in reports]:
        for name, value in getattr(report, "user_properties", []):
            if name.startswith(_COUNT) and report.when == "call":
                sums[name.removeprefix(_COUNT)].update(value)
    for heading, lines in sums.items():
        terminalreporter.section(heading)
        for line, number in lines.items():
            terminalreporter.write_line(f"{number:9,}  {line}")
