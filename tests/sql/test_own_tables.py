"""Every metadata table and every version is what Iceberg's runtime tells, of tables that Java and PyIceberg wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from .conftest import enter
from .test_tables import SCHEMA, live

ASKING = Path(__file__).with_name("own_tables.py")


@pytest.mark.full
@pytest.mark.spark
def test_icebergs_own_tables_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path.resolve()
    settings = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    lines = "".join(f"    {name}: {value}\n" for name, value in settings.items())
    (folder / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n{lines}")
    enter(folder, monkeypatch)
    catalog = SqlCatalog("lake", **settings)
    catalog.create_namespace("ns")
    specs = catalog.create_table("ns.specs", SCHEMA)
    live(specs)
    asked = {"folder": f"{folder}/java", "metadata": {"ns.specs": specs.metadata_location}}
    catalog.close()
    done = subprocess.run(
        [sys.executable, str(ASKING)],
        check=False,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["differs"] == {}
    assert said["compared"] > 70
