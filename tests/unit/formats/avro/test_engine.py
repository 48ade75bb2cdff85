"""Which way the loop runs: a small file must not pay for numba, many of them are worth it."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import firnline
from firnline.formats.avro import decode
from firnline.formats.avro.codecs import PLAIN, best
from firnline.formats.avro.engine import PATIENCE, PYTHON, Choice

from .containers import file, record, text

NAMES = file(record(("name", "string")), *[(1, text(f"n{number}")) for number in range(1000)], codec="deflate")
SOURCE = str(Path(next(iter(firnline.__path__))).parent)

READ = """
import sys
{before}
import pyarrow as pa
from firnline.formats.avro import decode
assert decode(sys.stdin.buffer.read(), {{"name": pa.string()}}, way={way!r}).batch["name"][999].as_py() == "n999"
{after}
"""


def read_in_new_process(way: str, before: str = "", after: str = "", **environment: str) -> None:
    """Read the file where numba was not imported before."""
    code = READ.format(way=way, before=before, after=after)
    variables = os.environ | {"PYTHONPATH": SOURCE} | environment
    subprocess.run([sys.executable, "-c", code], input=NAMES, env=variables, check=True, timeout=300)


def test_a_small_file_does_not_import_numba() -> None:
    read_in_new_process("auto", after='assert "numba" not in sys.modules')


def test_any_file_is_read_where_numba_is_missing() -> None:
    many = 'import firnline.formats.avro.engine as engine; engine.PATIENCE = 0; sys.modules["numba"] = None'
    read_in_new_process("auto", before=many)


@pytest.mark.parametrize("missing", ["cramjam", "deflate", "isal", "zstandard"])
def test_any_file_is_read_where_a_codec_is_missing(missing: str) -> None:
    plain = "from firnline.formats.avro import codecs; assert codecs.best() is codecs.PLAIN"
    read_in_new_process("auto", before=f"sys.modules[{missing!r}] = None", after=plain)


def test_the_fast_packages_are_taken_where_they_are() -> None:
    assert best() is not PLAIN


def test_numba_works_where_no_cache_can_be_kept() -> None:
    read_in_new_process("compiled", NUMBA_CACHE_LOCATOR_CLASSES="UserProvidedCacheLocator")


def test_many_small_files_are_worth_numba() -> None:
    choice = Choice()
    assert choice.by_size(PATIENCE // 2) is PYTHON
    assert choice.by_size(PATIENCE // 2) is PYTHON
    assert choice.by_size(1) is not PYTHON
    assert choice.by_size(1) is choice.compiled()


@pytest.mark.parametrize("way", ["python", "compiled"])
def test_threads_do_not_disturb_each_other(way: str) -> None:
    expected = [f"n{number}" for number in range(1000)]
    with ThreadPoolExecutor(8) as pool:
        for batch in pool.map(lambda _: decode(NAMES, {"name": pa.string()}, way=way).batch, range(64)):  # type: ignore[arg-type]
            assert batch["name"].to_pylist() == expected
