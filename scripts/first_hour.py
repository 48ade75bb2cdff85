"""Records a first hour with firnline into docs/guides/first-hour.md: `make first-hour` runs it.

From the built wheel, in a bare environment, on a lake of one's own: S3 and PostgreSQL servers that are started for it.
All that the page shows was typed and printed; a command that ends otherwise than it should ends the recording.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import boto3

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "guides" / "first-hour.md"
MOST = 26
"""Lines of what one command says; the page has the first of them."""

HEAD = """\
# The first hour

A recording: firnline installed from its wheel into a bare environment, on a lake in S3 with its catalog in PostgreSQL,
with tables written by PyIceberg. `make first-hour` starts such servers and records it again; ids, times and ports are
those of that day.
"""
WRITE = """\
import pyarrow as pa
from pyiceberg.catalog import load_catalog

catalog = load_catalog("lake")
catalog.create_namespace("sales")
rows = pa.table({"id": range(100), "note": ["a note of some length"] * 100})
for name in ("orders", "returns"):
    table = catalog.create_table(f"sales.{name}", rows.schema)
    for day in range(12):
        (table.overwrite if day % 4 == 3 else table.append)(rows)
orders = catalog.load_table("sales.orders")
orders.manage_snapshots().create_tag(orders.metadata.snapshots[3].snapshot_id, "audit-1").commit()
"""
POLICY = 'keep: {last: 3, tags: ["audit-*"]}\ngrace: 1h\n'


class Shown(NamedTuple):
    """A part of the page: what is said, then commands, or a file that is written."""

    said: str
    commands: tuple[str, ...] = ()
    file: tuple[str, str] | None = None


def parts(catalog: str) -> tuple[Shown, ...]:
    return (
        Shown("## The lake\n\nPyIceberg's own configuration says where it is:", file=(".pyiceberg.yaml", catalog)),
        Shown("Two tables with a dozen commits each, and a tag:", ("python write.py",), ("write.py", WRITE)),
        Shown(
            "## Look\n\nIs everything there that a run needs, and what is in the lake?",
            ("firnline doctor", "firnline tables"),
        ),
        Shown("What would go by the table's own retention, and what by a rule?", ("firnline plan lake.sales.orders",)),
        Shown("", ("firnline plan --all --keep-last 2",)),
        Shown("## A policy", ("firnline policy check", "firnline plan lake.sales.orders"), ("firnline.yaml", POLICY)),
        Shown("", ("firnline why lake.sales.orders audit-1",)),
        Shown(
            "## Expire, and change your mind",
            ("firnline expire lake.sales.orders --yes", "firnline runs", "firnline undo lake.sales.orders"),
        ),
        Shown(
            "## Expire for good\n\nWithout grace the files go at once; half of what may go, the oldest first:",
            ("firnline expire lake.sales.orders --at-most 50% --grace 0s --yes", "firnline check lake.sales.orders"),
        ),
        Shown("The other table waits for its grace, and `purge` says so:", ("firnline expire --all --yes",)),
        Shown("", ("firnline purge", "firnline runs")),
        Shown("## Orphans", ("firnline orphans lake.sales.orders --dry-run",)),
        Shown(
            "## Ask in SQL\n\nThis starts Spark, so it needs Java:",
            (
                'firnline sql "SELECT snapshot_id, operation FROM lake.sales.orders.snapshots"',
                'firnline sql "SELECT count(*) AS live FROM lake.sales.orders"',
                'firnline sql "SELEC 1" || true',
            ),
        ),
    )


def catalog() -> str:
    """Returns the configuration of the servers that this process was handed; makes the bucket."""
    running = json.loads(os.environ["FIRNLINE_SERVERS"])
    store, database = running["moto"]["settings"], running["postgres"]["settings"]["uri"]
    keys = {"aws_access_key_id": store["s3.access-key-id"], "aws_secret_access_key": store["s3.secret-access-key"]}
    client = boto3.client("s3", endpoint_url=store["s3.endpoint"], region_name=store["s3.region"], **keys)
    client.create_bucket(Bucket="warehouse")
    lines = ["catalog:", "  lake:", "    type: sql", f"    uri: {database}", "    warehouse: s3://warehouse/"]
    return "\n".join([*lines, *(f"    {name}: {value}" for name, value in store.items())]) + "\n"


def recorded(folder: Path) -> Iterator[str]:
    """Yields the page, part by part, as it happens."""
    yield HEAD
    for part in parts(catalog()):
        if part.said:
            yield part.said
        if part.file is not None:
            name, text = part.file
            (folder / name).write_text(text)
            yield f"`{name}`:\n\n```{Path(name).suffix[1:].replace('py', 'python') or 'yaml'}\n{text}```"
        if part.commands:
            yield "```text\n" + "\n".join(ran(command, folder) for command in part.commands) + "\n```"


def ran(command: str, folder: Path) -> str:
    """Returns a command with what it said, on both channels. Raises SystemExit where it failed."""
    path = f"{folder / 'env' / 'bin'}:{os.environ['PATH']}"
    settings = {"PATH": path, "HOME": str(folder), "PYICEBERG_HOME": str(folder), "COLUMNS": "120"}
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "LANG", "PIP_INDEX_URL") if name in os.environ}
    both = f"{{ {command}\n}} 2>&1"
    how = {**kept, **settings}
    found = subprocess.run(both, shell=True, cwd=folder, env=how, text=True, check=False, stdout=subprocess.PIPE)
    if found.returncode:
        raise SystemExit(f"{command}\n{found.stdout}")
    lines = found.stdout.replace(str(folder), "~").replace(os.environ["JAVA_HOME"], "$JAVA_HOME").splitlines()
    shown = lines if len(lines) <= MOST else [*lines[:MOST], "[…]"]
    return "\n".join([f"$ {command}", *shown])


def install(folder: Path) -> str:
    """Returns what was typed to install the wheel into a bare environment."""
    uv = str(ROOT / ".venv" / "bin" / "uv")
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", str(folder / "dist"), str(ROOT)], check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    whole = f"firnline[all] @ file://{wheel}"
    subprocess.run([uv, "pip", "install", "-q", "--python", str(folder / "env" / "bin" / "python"), whole], check=True)
    return "## Install\n\n```sh\npython -m venv env && . env/bin/activate\npip install 'firnline[all]'\n```"


def main() -> int:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        installed = install(folder)
        head, *rest = recorded(folder)
    PAGE.write_text("\n\n".join([head.rstrip(), installed, *rest]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
