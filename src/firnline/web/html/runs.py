"""One run: where it stands, what it planned, its stages, and what became of its files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from firnline.journal.events import RunState
from firnline.model.times import tell_second
from firnline.plans.html.markup import Markup, element, joined, listed, paragraph
from firnline.plans.pages import number, size, tally
from firnline.plans.stages import in_words
from firnline.web.facts.runs import RunReport
from firnline.web.html.document import figure_list, rows_of, section, self_contained

MOVING = frozenset({RunState.COMMITTING, RunState.PURGING, RunState.ARCHIVED})


def run_document(report: RunReport) -> Markup:
    """Returns the report of a run in one file."""
    return self_contained(
        f"{report.status.id}: report",
        paragraph(f"as of {tell_second(report.made_ms)}"),
        run_sections(report),
    )


def run_sections(report: RunReport, *, live: bool = False, purged: int = 0) -> Markup:
    """Returns all that there is to see of a run; the figures are those of its JSON. `live`: it may move on at any
    moment, and a page asks again. `purged` files met their end that the record may not have yet.
    """
    shown = {"data_live": "yes"} if live else {}
    standing = element("div", *_standing(report, max(report.done, purged)), id="standing", **shown)
    return joined([standing, *_sections(report)])


def _standing(report: RunReport, done: int) -> Iterator[Markup]:
    status, planned = report.status, report.status.run.plan["victims"]
    yield figure_list(
        state=status.state.value,
        snapshots=number(len(status.run.plan["expire"])),
        files=number(planned["files"]),
        bytes=size(planned["bytes"]),
        done=number(done),
    )
    if planned["files"]:
        bar = {"max": str(planned["files"]), "value": str(done), "aria_label": "files that met their end"}
        said = f"{number(done)} of {number(planned['files'])} files"
        yield element("p", element("progress", said, **bar), f" {said}")
    if status.waits:
        yield paragraph(f"waits for: {status.waits_told}")
    if status.run.approval is not None:
        by, note = status.run.approval.detail["by"], status.run.approval.detail.get("note")
        yield paragraph(f"approved by {by}{f': {note}' if note else ''}")
    if status.refusal is not None:
        yield element("p", f"refused: {status.refusal.message}", class_="bad")
    if status.outcomes:
        yield paragraph(", ".join(f"{name}: {tally(each)}" for name, each in status.outcomes.items()))
    yield from _events(report)


def _events(report: RunReport) -> Iterator[Markup]:
    events = report.status.run.events
    yield rows_of(
        ("event", "at", "state", "by"),
        ((str(e.number), tell_second(e.at_ms), e.state.value, str(e.detail.get("by") or "")) for e in events),
    )
    if report.status.run.stages_left:
        yield paragraph("still to come:")
        yield listed(f"will {in_words(each)}" for each in report.status.run.stages_left)


def _sections(report: RunReport) -> Iterator[Markup]:
    yield section("What it planned", *_plan(report.status.run.plan), id_="plan")
    yield section("Bytes by reason", _reasons(report), id_="reasons")
    yield section("Files", _files(report), id_="files")
    yield section("Who did what", _audit(report), id_="audit")


def _plan(plan: Any) -> Iterator[Markup]:
    """Yields the saved plan as it was written down; what another version of firnline wrote may lack some of it."""
    yield paragraph(f"{plan['table']} ({plan.get('format', '')}): {plan.get('policy', '')}")
    for why in dict.fromkeys(filter(None, (plan.get("conflict"), plan.get("refused")))):
        yield element("p", f"refused: {why}", class_="bad")
    kinds = (plan.get("victims") or {}).get("by_kind") or {}
    rows = ((kind, number(each["files"]), size(each["bytes"])) for kind, each in kinds.items())
    yield rows_of(("kind", "files", "bytes"), rows, (1, 2))
    for note in plan.get("notes") or ():
        yield paragraph(f"note: {note}")
    yield from _gone(plan)
    yield from _handed(plan.get("archive"))
    yield from _searched(plan.get("orphans") or (plan if plan.get("classes") else None))
    kept = plan.get("keep") or ()
    rows_kept = ((str(e["snapshot"]), ", ".join(e["refs"]), ", ".join(e["reasons"])) for e in kept)
    table = rows_of(("snapshot", "refs", "why it stays"), rows_kept)
    yield element("details", element("summary", f"keep: {number(len(kept))}"), table)


def _gone(plan: Any) -> Iterator[Markup]:
    """Yields what leaves the table. Refs stand open: there are few, and people named them."""
    gone = plan.get("expire") or ()
    yield element("details", element("summary", f"expire: {number(len(gone))}"), listed(map(str, gone)))
    if plan.get("expire_refs"):
        yield paragraph("expire refs:")
        yield listed(map(str, plan["expire_refs"]))
    beside = (plan.get("beside") or {}).get("expire") or ()
    if beside:
        yield paragraph("expire beside them:")
        yield listed(f"{each['kind']} {each['name']}: {each.get('why', '')}" for each in beside)
    erased = plan.get("erasure")
    if erased:
        yield paragraph(f"erase for {erased['case']}, by {erased['by']}:")
        yield listed(map(str, erased["files"]))


def _handed(archive: Any) -> Iterator[Markup]:
    """Yields what is handed to a tier before it leaves the table."""
    if not archive:
        return
    kind = f" in class {archive['class']}" if archive.get("class") else ""
    copies = archive.get("copies") or {}
    coming = f": at most {number(copies['files'])} files, {size(copies['bytes'])}" if copies else ""
    yield paragraph(f"archive to {archive['tier']}{kind}, as {archive['table']} in {archive['root']}{coming}")
    handed = archive["snapshots"]
    yield element("details", element("summary", f"archive: {number(len(handed))}"), listed(map(str, handed)))


def _searched(found: Any) -> Iterator[Markup]:
    """Yields what a listing showed, class by class; the orphans among it go too."""
    if not found:
        return
    catalogs = ", ".join(map(str, found.get("catalogs") or ()))
    held = f"held against what {number(found.get('tables') or 0)} tables need, of catalogs: {catalogs}"
    yield paragraph(f"orphans older than {found['older_than']}, {held}")
    classes = found.get("classes") or {}
    rows = ((name, number(each["files"]), size(each["bytes"])) for name, each in classes.items() if each["files"])
    yield rows_of(("class", "files", "bytes"), rows, (1, 2))


def _reasons(report: RunReport) -> Markup:
    found = report.account.by_reason
    if not found:
        return paragraph("no file has met its end yet")
    rows = ((outcome.value, why, number(each.files), size(each.bytes)) for (outcome, why), each in found.items())
    return rows_of(("outcome", "reason", "files", "bytes"), rows, (2, 3))


def _files(report: RunReport) -> Markup:
    files = report.account.files
    if not files:
        return paragraph("no file has met its end yet")
    more = report.done - len(files)
    cut = paragraph(f"… and {number(more)} more: `firnline sql` has all of them") if more > 0 else ""
    rows = ((row.key, row.kind, size(row.size), row.outcome.value, row.why) for row in files)
    return joined([rows_of(("file", "kind", "size", "outcome", "reason"), rows, (2,)), cut])


def _audit(report: RunReport) -> Markup:
    if report.audit is None:
        return paragraph("no audit log is kept, or it cannot be read")
    if not report.audit:
        return paragraph("the audit log has nothing on it")
    rows = (
        (e.news["at"], e.news["to"], f"{e.who['user']} on {e.who['host']}", _words(e.news["words"]))
        for e in report.audit
    )
    return rows_of(("at", "what", "process of", "said"), rows)


def _words(said: dict[str, str]) -> str:
    return ", ".join(f"{name}: {each}" for name, each in said.items())
