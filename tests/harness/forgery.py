"""A run that somebody forged who may write into a table's folder, and has no key: every digest in it is right."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from firnline.journal.parts import seal
from firnline.model.locations import identity
from firnline.model.removals import Removal
from harness.disks import local

Edit = Callable[[dict[str, Any]], Any]
_STAMP = "20200101T000000Z-f0f0f0"


def without_grace(plan: dict[str, Any]) -> None:
    """Edits a plan so that no stage of it waits."""
    for stage in plan["stages"]:
        stage.update({"grace_ms": 0} if "grace_ms" in stage else {})


@dataclass(frozen=True)
class Forgery:
    """The folder of a forged run, in which each change makes the digests fit again."""

    folder: Path

    @staticmethod
    def side_objects(real: str) -> Forgery:
        """Returns a new run beside a real one, whose folder this is: its plan and first event, under another name."""
        source = local(real)
        made = Forgery(source.with_name(_STAMP))
        plan = json.loads((source / "plan.json").read_text())
        for name in ("events", *plan["parts"]):
            (made.folder / name).mkdir(parents=True)
        made._write_plan({**plan, "parts": {name: {} for name in plan["parts"]}})
        made.say({**json.loads((source / "events/000001.json").read_text()), "detail": {}})
        made.edit(lambda plan: None)
        return made

    @property
    def stamp(self) -> str:
        return self.folder.name

    def edit(self, change: Edit) -> None:
        """Changes the plan, and the first event with it."""
        plan = json.loads((self.folder / "plan.json").read_text())
        change(plan)
        self._write_plan(plan)
        first = self.folder / "events/000001.json"
        said = json.loads(first.read_text())
        digest = seal((self.folder / "plan.json").read_bytes())
        first.write_text(json.dumps({**said, "seal": "", "detail": {**said["detail"], "plan": digest}}))

    def victims(self, keys: Sequence[str], **columns: Sequence[Any]) -> None:
        """Writes the list: these files, whatever they are."""
        rows: dict[str, Sequence[Any]] = {
            "identity": [identity(key) for key in keys],
            "key": list(keys),
            "size": [1] * len(keys),
        }
        self._part("victims", "0-00000.parquet", {**rows, "kind": ["data"] * len(keys), **columns})

    def walked(self, keys: Sequence[str]) -> None:
        """Declares units walked, so that no purge looks into them."""
        self._part("walked", "00000.parquet", {"identity": [identity(key) for key in keys]})

    def say(self, event: Mapping[str, Any]) -> None:
        """Adds an event."""
        number = len(list((self.folder / "events").iterdir())) + 1
        said = {"at_ms": 1, "write_id": "f0", "seal": "", "detail": {}, **event, "number": number}
        (self.folder / f"events/{number:06d}.json").write_text(json.dumps(said))

    def committed(self, **detail: Any) -> None:
        """Says that the run was committed, long ago."""
        nothing = {"removal": Removal().to_json(), "forgotten": [], "base": "", "location": ""}
        self.say({"state": "committed", "detail": {**nothing, **detail}})

    def _part(self, folder: str, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
        path = self.folder / folder / name
        pq.write_table(pa.table(dict(columns)), path)
        self.edit(lambda plan: plan["parts"][folder].update({name: seal(path.read_bytes())}))

    def _write_plan(self, plan: Mapping[str, Any]) -> None:
        (self.folder / "plan.json").write_text(json.dumps(plan))
