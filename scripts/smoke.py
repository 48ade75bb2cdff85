"""What a fresh install must do, run by its own Python: plan, expire, undo and purge a table in a folder, find itself
well, and say what is missing where an extra is. `--all` where all extras are installed: then it asks Spark too, if
there is a Java; else none of them may be needed, nor be there.

smoke.py FIRNLINE [--all]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import load_catalog

LEFT_OUT = ("pyspark", "pandas", "numba", "llvmlite", "boto3", "icechunk", "psycopg", "redis")
ROWS = 6


def ran(firnline: str, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([firnline, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def said(firnline: str, *arguments: str) -> Any:
    return json.loads(ran(firnline, *arguments, "--json").stdout)


def make_lake(folder: Path) -> Any:
    where = {"type": "sql", "uri": f"sqlite:///{folder}/lake.db", "warehouse": f"file://{folder}/warehouse"}
    settings = "".join(f"    {name}: {value}\n" for name, value in where.items())
    (folder / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n{settings}")
    os.environ["PYICEBERG_HOME"] = str(folder)
    catalog = load_catalog("lake", **where)
    catalog.create_namespace("sales")
    table = catalog.create_table("sales.orders", schema=pa.schema([("x", pa.int64())]))
    for value in range(ROWS):
        table.append(pa.table({"x": [value]}))
    return catalog


def smoke(firnline: str, *, has_all: bool) -> None:
    there = [name for name in LEFT_OUT if find_spec(name)]
    assert there == (list(LEFT_OUT) if has_all else []), there
    with tempfile.TemporaryDirectory() as folder:
        catalog = make_lake(Path(folder))
        os.chdir(folder)
        table, keep = "lake.sales.orders", ("--older-than", "2100-01-01T00:00:00Z", "--retain-last", "2")
        assert len(said(firnline, "plan", table, *keep)["expire"]) == ROWS - 2
        has_spark = has_all and bool(os.environ.get("JAVA_HOME") or which("java"))
        if has_spark:
            on_spark = said(firnline, "plan", table, *keep, "--engine", "spark")
            assert (on_spark["engine"], len(on_spark["expire"])) == ("spark", ROWS - 2), on_spark
        run = said(firnline, "expire", table, *keep, "--yes")["run"]
        assert len(catalog.load_table("sales.orders").snapshots()) == 2
        ran(firnline, "undo", run)
        assert len(catalog.load_table("sales.orders").snapshots()) == ROWS
        ran(firnline, "expire", table, *keep, "--yes", "--grace", "0s")
        rows = catalog.load_table("sales.orders").scan().to_arrow()["x"].to_pylist()
        assert sorted(rows) == list(range(ROWS))
        assert said(firnline, "doctor")["well"], "the doctor found a problem"
        if has_spark:
            counted = ran(firnline, "sql", f"SELECT count(*) AS n FROM {table}.snapshots").stdout
            assert "2" in counted, counted
        elif not has_all:
            refused = ran(firnline, "sql", "SELECT 1", code=2).stderr
            assert "pip install 'firnline[spark]'" in refused, refused


if __name__ == "__main__":
    smoke(os.path.abspath(sys.argv[1]), has_all="--all" in sys.argv[2:])
    print(f"{sys.argv[1]}: plans, expires, undoes and purges")
