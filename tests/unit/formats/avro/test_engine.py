"""Which way the loop runs: a small file must not pay for compiled code, many of them are worth it."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import firnline
from firnline.formats.avro import decode, machine_code
from firnline.formats.avro.codecs import PLAIN, best
from firnline.formats.avro.engine import PYTHON, TO_BUILD, TO_LOAD, Choice

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


IMPATIENT = "import firnline.formats.avro.engine as engine; engine.TO_LOAD = engine.TO_BUILD = 0; "


def test_a_small_file_imports_no_compiler() -> None:
    read_in_new_process("auto", after='assert not {"numba", "llvmlite"} & set(sys.modules)')


def test_compiled_loops_are_loaded_without_numba() -> None:
    read_in_new_process("compiled")
    read_in_new_process("compiled", before='sys.modules["numba"] = None', after='assert "llvmlite" in sys.modules')


@pytest.mark.parametrize("missing", ["numba", "llvmlite"])
def test_any_file_is_read_where_nothing_can_be_compiled(missing: str, tmp_path: Path) -> None:
    """Where nothing was kept either: numba is what builds, llvmlite what loads."""
    nothing_kept = "import firnline.formats.avro.machine_code as code; code._paths = lambda make=False: iter(()); "
    read_in_new_process("auto", before=f"{IMPATIENT}{nothing_kept}sys.modules[{missing!r}] = None")


@pytest.mark.parametrize("missing", ["cramjam", "deflate", "isal", "zstandard"])
def test_any_file_is_read_where_a_codec_is_missing(missing: str) -> None:
    plain = "from firnline.formats.avro import codecs; assert codecs.best() is codecs.PLAIN"
    read_in_new_process("auto", before=f"sys.modules[{missing!r}] = None", after=plain)


def test_the_fast_packages_are_taken_where_they_are() -> None:
    assert best() is not PLAIN


def test_many_small_files_are_worth_compiled_loops() -> None:
    Choice().compiled()
    choice = Choice()
    assert choice.by_size(TO_LOAD // 2) is PYTHON
    assert choice.by_size(TO_LOAD // 2) is PYTHON
    assert choice.by_size(1) is not PYTHON
    assert choice.by_size(1) is choice.compiled()


@pytest.mark.slow
@pytest.mark.full
def test_loops_that_must_be_built_need_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code, "kept", lambda: None)
    choice = Choice()
    assert choice.by_size(TO_BUILD) is PYTHON
    assert choice.by_size(1) is not PYTHON


def test_what_cannot_be_compiled_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> bytes:
        tried.append(1)
        raise RuntimeError("no")

    tried: list[int] = []
    monkeypatch.setattr(machine_code, "load", refuse)
    choice = Choice()
    assert [choice.by_size(2 * TO_BUILD) for _ in range(3)] == [PYTHON] * 3
    assert tried == [1]


@pytest.mark.parametrize("way", ["python", "compiled"])
def test_threads_do_not_disturb_each_other(way: str) -> None:
    expected = [f"n{number}" for number in range(1000)]
    with ThreadPoolExecutor(8) as pool:
        for batch in pool.map(lambda _: decode(NAMES, {"name": pa.string()}, way=way).batch, range(64)):  # type: ignore[arg-type]
            assert batch["name"].to_pylist() == expected
