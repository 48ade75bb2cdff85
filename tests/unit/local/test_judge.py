"""Real names are compared where there are any, and folders by all of theirs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from firnline.local.rows import ROWS
from firnline.ports.engines import FILE_COLUMNS, OUTSIDE, Territory
from firnline.stores.real_paths import RealPaths
from firnline.walking.verdicts import KEPT, VICTIM, _real, judged, verdicts


def _files(*keys: str) -> pa.Table:
    rows = [{"identity": key, "key": key, "kind": "data", "opens": False, "needed": False} for key in keys]
    return pa.concat_tables([pa.Table.from_pylist([row], ROWS) for row in rows])


def _keys(files: pa.Table, verdict: str) -> set[str]:
    return set(judged(files, verdict, FILE_COLUMNS).column("key").to_pylist())


def test_names_without_links_are_the_real_ones(tmp_path: Path) -> None:
    """They are the very same column: nothing is compared twice."""
    names = _files(f"file://{tmp_path}/a", f"file://{tmp_path}/b").column("identity")
    assert names.num_chunks == 2
    assert _real(names, Territory(None, real=RealPaths())) is names


def test_a_folder_of_another_table_is_spared_by_its_other_name(tmp_path: Path) -> None:
    """No link leads to the file by its own name, but the other table's folder is called by one."""
    (tmp_path / "table" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "table" / "inner")
    theirs, ours = (f"file://{tmp_path}/table/{name}" for name in ("inner/x", "y"))
    territory = Territory((f"file://{tmp_path}/table",), (f"file://{tmp_path}/link",), RealPaths())
    found = verdicts(_files(theirs, ours), territory)
    assert (_keys(found, OUTSIDE), _keys(found, VICTIM), _keys(found, KEPT)) == ({theirs}, {ours}, set())
