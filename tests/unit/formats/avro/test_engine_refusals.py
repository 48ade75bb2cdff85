"""Whatever is wrong with the compiler on an executor, files are read."""

from __future__ import annotations

import pytest

from firnline.formats.avro import machine_code
from firnline.formats.avro.engine import PYTHON, TO_BUILD, Choice


@pytest.mark.parametrize(
    "refusal",
    [
        ImportError("Numba needs NumPy 2.3 or less"),
        RuntimeError("no"),
        OSError("Could not find/load shared object file 'libllvmlite.so'"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_compiler_that_cannot_be_loaded_is_done_without(monkeypatch: pytest.MonkeyPatch, refusal: Exception) -> None:
    def refuse() -> bytes:
        raise refusal

    monkeypatch.setattr(machine_code, "load", refuse)
    assert Choice().by_size(2 * TO_BUILD) is PYTHON
