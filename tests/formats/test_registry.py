"""Formats are found by their kits, and nothing else knows their names."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import firnline
from firnline.errors import UnsupportedFormat, UsageError
from firnline.formats.registry import EveryFormat, commits_of, kit_at, kit_named, kit_of_document, kits
from firnline.ports.kits import GROUP, Committing, CommittingByLibrary, Kit, Retiring
from firnline.ports.retire import Retire
from firnline.spark.executors.shipping import distributions, needed
from firnline.stores.objects import ObjectStores

SOURCE = Path(firnline.__file__).parent
KNOWING = ("formats", "catalogs", "testing")
"""Where a format may be called by its name."""

Install = Callable[[str, str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a package on the path that has one module and claims one format."""

    def installed(name: str, module: str, code: str) -> None:
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {module}:KIT\n")
        (tmp_path / f"{module}.py").write_text(code)
        monkeypatch.syspath_prepend(str(tmp_path))
        kits.cache_clear()

    yield installed
    kits.cache_clear()


def test_other_packages_are_asked_first_and_iceberg_last(install: Install) -> None:
    assert [each.name for each in kits()] == ["paimon", "icechunk", "iceberg"]
    install("hoard", "hoard_lake", "class Kit:\n    name = 'hoard'\n\nKIT = Kit()\n")
    assert [each.name for each in kits()] == ["hoard", "paimon", "icechunk", "iceberg"]


def test_no_package_takes_the_name_of_a_format_that_is_there(install: Install) -> None:
    install("paimon", "other_paimon", "KIT = None\n")
    with pytest.raises(UsageError, match="other_paimon:KIT claims to be the format paimon"):
        kits()


def test_a_package_that_cannot_be_loaded_stops_the_command(install: Install) -> None:
    """Its tables would be nobody's, and their files garbage."""
    install("hoard", "broken_lake", "raise RuntimeError('no luck')\n")
    with pytest.raises(UsageError, match="hoard cannot be loaded from broken_lake:KIT: RuntimeError: no luck"):
        kits()


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(UnsupportedFormat, match="the format hoard cannot be read"):
        kit_named("hoard")


def test_what_is_in_a_folder_tells_the_format(tmp_path: Path) -> None:
    (tmp_path / "p/schema").mkdir(parents=True)
    (tmp_path / "p/schema/schema-0").write_text("{}")
    (tmp_path / "p/metadata").mkdir()
    (tmp_path / "p/metadata/v1.metadata.json").write_text("{}")
    store = ObjectStores()
    assert kit_at(store, str(tmp_path / "p")).name == "paimon"  # which keeps the other's metadata too
    assert kit_at(store, str(tmp_path / "elsewhere")).name == "iceberg"


@pytest.mark.parametrize(
    ("key", "name", "folder"),
    [
        ("/w/t/metadata/00001-x.metadata.json", "iceberg", "/w/t"),
        ("/w/t/metadata/v1.metadata.json.gz", "iceberg", "/w/t"),
        ("/w/t/schema/schema-3", "paimon", "/w/t"),
        ("/w/t/branch/branch-b/schema/schema-3", "paimon", "/w/t"),
        ("/w/t/repo", "icechunk", "/w/t"),
        ("/w/t/refs/branch.main/ref.json", "icechunk", "/w/t"),
        ("/w/t/data/x.parquet", None, "/w/t"),
    ],
)
def test_metadata_is_known_by_its_name(key: str, name: str | None, folder: str) -> None:
    kit = kit_of_document(key)
    assert (None if kit is None else kit.name) == name
    assert EveryFormat(ObjectStores()).folder_of(key) == folder


@pytest.mark.parametrize("key", ["/w/t/_delta_log/00000000000000000001.json", "/w/t/.hoodie/hoodie.properties"])
def test_metadata_of_a_format_without_a_kit_stops(key: str) -> None:
    with pytest.raises(UnsupportedFormat, match="which this version cannot read"):
        EveryFormat(ObjectStores()).table_of(key)


def test_a_table_that_is_there_by_its_folder_was_dropped_by_nobody() -> None:
    with pytest.raises(UnsupportedFormat, match="in no catalog"):
        EveryFormat(ObjectStores()).dropped_table("/w/t/schema/schema-0")


@pytest.mark.parametrize("kit", kits(), ids=lambda kit: kit.name)
def test_the_port_that_removes_metadata_is_made_for_a_kit_that_needs_it(kit: Kit) -> None:
    made: list[str] = []

    def retire() -> Retire:
        made.append("retire")
        return None  # type: ignore[return-value]

    commits_of(kit, ObjectStores(), retire, {}, "/w/t")
    assert bool(made) is isinstance(kit, Retiring)
    assert sum(isinstance(kit, each) for each in (Retiring, Committing, CommittingByLibrary)) == 1


def test_nothing_else_calls_a_format_by_its_name() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] not in KNOWING
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in ("iceberg", "icechunk", "paimon")
    ]
    assert not found


def test_executors_get_the_package_of_a_format(install: Install) -> None:
    install("hoard", "hoard_lake", "KIT = None\n")
    assert "hoard_lake" in needed()
    assert "hoard_lake" in distributions()


def test_looking_for_formats_loads_no_decoder() -> None:
    code = (
        "import sys; from firnline.formats.registry import kits; kits(); "
        "heavy = {'pyarrow', 'numba', 'pyiceberg', 'pyspark', 'obstore'} & sys.modules.keys(); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
