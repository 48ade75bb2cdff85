"""An executor does not read its zip archives again before every task, and still imports from them."""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZipFile
from zipimport import zipimporter

import pytest

from firnline.spark.telling import forget_zip_importers


def zip_importers() -> list[str]:
    return [path for path, importer in sys.path_importer_cache.items() if isinstance(importer, zipimporter)]


def test_what_was_imported_stays_and_what_was_not_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ZipFile(tmp_path / "packed.zip", "w") as archive:
        for name in ("first", "second"):
            archive.writestr(f"firnline_packed/{name}.py", f"NAME = {name!r}\n")
        archive.writestr("firnline_packed/__init__.py", "")
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    from firnline_packed import first  # type: ignore[import-not-found]

    assert zip_importers()
    forget_zip_importers()
    assert zip_importers() == []
    from firnline_packed import second  # type: ignore[import-not-found]

    assert (first.NAME, second.NAME) == ("first", "second")
    for name in [name for name in sys.modules if name.startswith("firnline_packed")]:
        monkeypatch.delitem(sys.modules, name)
    forget_zip_importers()
