"""A writer of toy tables, and a reader of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firnline.model.times import DAY_MS

START_MS = 1_767_225_600_000
MARK = {"nobody-knows": ["this", 1]}


@dataclass(frozen=True)
class ToyTable:
    """A table in a folder: five snapshots, of which the second has a tag; each shares a file with the one before."""

    folder: Path

    @staticmethod
    def make(folder: Path) -> ToyTable:
        table = ToyTable(folder)
        for number in range(1, 6):
            table._write(f"files/data-{number}", b"x" * (10 + number))
        said = {"uuid": f"toy-{folder.name}", "main": 5, "tags": {"two": {"id": 2}}, "properties": {}}
        table._put({**said, "snapshots": [table._snapshot(number) for number in range(1, 6)]}, 1)
        return table

    def _snapshot(self, number: int) -> dict[str, Any]:
        names = [f"data-{each}" for each in (number - 1, number) if each]
        listed = json.dumps([[name, 10 + int(name.rpartition("-")[2])] for name in names]).encode()
        self._write(f"lists/{number}.json", listed)
        time = START_MS + number * DAY_MS
        return {"id": number, "parent": number - 1 or None, "time": time, "size": len(listed)}

    @property
    def location(self) -> str:
        return str(self.folder)

    @property
    def vital(self) -> tuple[str, ...]:
        return (str(self._newest()),)

    def needed(self) -> set[str]:
        lists = [self.folder / "lists" / f"{each['id']}.json" for each in self._said()["snapshots"]]
        names = {name for each in lists for name, _ in json.loads(each.read_bytes())}
        return {*map(str, lists), *(str(self.folder / "files" / name) for name in names)}

    def mark(self) -> None:
        said = self._said()
        said = {**said, **MARK, "snapshots": [{**each, **MARK} for each in said["snapshots"]]}
        said["tags"] = {name: {**tag, **MARK} for name, tag in said["tags"].items()}
        self._put(said, int(self._newest().stem) + 1)

    def marked(self) -> bool:
        said = self._said()
        return all(MARK.items() <= each.items() for each in (said, *said["snapshots"], *said["tags"].values()))

    def _said(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._newest().read_bytes())
        return found

    def _newest(self) -> Path:
        return max((self.folder / "toy").iterdir())

    def _put(self, said: dict[str, Any], version: int) -> None:
        self._write(f"toy/{version:06d}.json", json.dumps(said).encode())

    def _write(self, path: str, data: bytes) -> None:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
