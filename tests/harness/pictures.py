"""A picture of a world without what differs between two equal ones: random names, times, lengths of logs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from firnline.catalogs.rest.commits import is_fence
from firnline.journal.events import RunState
from firnline.journal.runs import Run
from firnline.model.removals import Removal
from harness.processes import Process
from harness.writers import Document, Writer

_OF_THE_MOMENT = ("last-updated-ms", "metadata-log", "table-uuid", "location")


@dataclass(frozen=True)
class Picture:
    """Two worlds with one history and equal pictures are equal to every reader and to firnline itself.

    `strays` are metadata files that no log names: a commit that lost or died leaves one, and it is no harm.
    """

    document: str
    files: tuple[str, ...]
    runs: tuple[str, ...]
    strays: int


def picture_of(writer: Writer, process: Process, table: str) -> Picture:
    names = _short_names(writer)
    document = writer.document()
    return Picture(
        document=json.dumps(_renamed(_lasting(document), names), sort_keys=True, indent=1).replace(writer.location, ""),
        files=tuple(sorted(names[path] for path in _on_disk(writer) if path in names)),
        runs=tuple(sorted(_story(carried.run) for carried in process.runs(table))),
        strays=_strays(writer, document),
    )


def _short_names(writer: Writer) -> dict[str, str]:
    """Returns every path ever written without the folder, which each world has for itself."""
    return {path: path.rpartition("/")[2] for path in writer.ledger.contents}


def _lasting(document: Document) -> Document:
    lasting = {name: value for name, value in document.items() if name not in _OF_THE_MOMENT}
    lasting["snapshots"] = sorted(
        ({**each, "timestamp-ms": 0} for each in document["snapshots"]), key=lambda each: each["snapshot-id"]
    )
    # Behind REST a tag is made wherever an earlier try must not land any more; what it may be, tests/services says.
    lasting["refs"] = {name: ref for name, ref in document["refs"].items() if not is_fence(name)}
    lasting["snapshot-log"] = [each["snapshot-id"] for each in document["snapshot-log"]]
    lasting["statistics"] = sorted(document["statistics"], key=lambda each: int(each["snapshot-id"]))
    return lasting


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value


def _on_disk(writer: Writer) -> Iterable[str]:
    return writer.disk.under(writer.location)


def _strays(writer: Writer, document: Document) -> int:
    named = {writer.place(), *(each["metadata-file"] for each in document["metadata-log"])}
    return sum(path.endswith(".metadata.json") and path not in named for path in _on_disk(writer))


def _story(run: Run) -> str:
    """Returns what a run came to: where it stands, what it was to expire and what it really took out."""
    committed = run.committed
    removal = committed.removal if committed else Removal()
    facts = {
        "state": run.state.value,
        "planned": sorted(run.plan["expire"]),
        "victims": run.plan["victims"]["files"],
        "snapshots": sorted(removal.ids),
        "refs": sorted(removal.refs),
        "left_alone": list(run.events[-1].detail.get("left_alone", ())),
        "spared": run.events[-1].detail.get("outcomes", {}).get("spared", {}).get("files")
        if run.state is RunState.DONE
        else None,
    }
    return json.dumps(facts, sort_keys=True)
