"""What was found of a table or of its surroundings, as a person reads it: the command and `print` show the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from firnline.model.times import minute
from firnline.ops.looking.check import Checked
from firnline.ops.looking.findings import Diagnosis, Severity
from firnline.ops.looking.why import RUN, SNAPSHOT, Explanation, OwnDocument, SnapshotAnswer
from firnline.plans.pages import Block, Grid, Hint, Line, Page, Tone, counted, size

_OF_SEVERITY = {Severity.OK: Tone.KEPT, Severity.WARNING: Tone.GOES, Severity.PROBLEM: Tone.REFUSED}


def why_page(answer: Explanation) -> Page:
    return Page(tuple(_of_why(answer)))


def check_page(checked: Checked) -> Page:
    return Page(tuple(_of_check(checked)))


def doctor_page(found: Diagnosis) -> Page:
    rows = tuple((each.level.value, each.topic, each.said) for each in found.findings)
    tones = tuple(_OF_SEVERITY[each.level] for each in found.findings)
    hints = tuple(Hint(f"{each.topic}: {each.hint}") for each in found.findings if each.hint)
    tone = (Tone.GOES if found.blind else Tone.KEPT) if found.is_well else Tone.REFUSED
    return Page((Grid(rows, tones=tones), Line(found.verdict, tone), *hints))


def _tone(kept: bool) -> Tone:
    return Tone.KEPT if kept else Tone.GOES


def _of_why(answer: Explanation) -> Iterator[Block]:
    if answer.file is None:
        yield from _of_snapshot(answer.needed_by[0])
        return
    yield Line(f"{answer.file}")
    if answer.own is not None:
        yield from _of_metadata(answer.own)
        return
    if not answer.needed_by:
        yield Line(f"nothing of {answer.table} needs this file")
        yield Hint("it may be another table's, or nobody's")
        return
    kept = sum(each.kept for each in answer.needed_by)
    kinds = Counter(each.kind for each in answer.needed_by)
    told = ", ".join(_counted(kind, number) for kind, number in sorted(kinds.items()))
    yield Line(f"needed by {told}, of which stay: {kept:,}")
    tones = tuple(_tone(each.kept) for each in answer.needed_by)
    yield Grid(
        tuple(map(_needer, answer.needed_by)), ("snapshot", "time (UTC)", "", "refs", "why"), tones=tones, toned=2
    )


def _counted(kind: str, number: int) -> str:
    return f"{counted(number, SNAPSHOT)} that a run took out" if kind == RUN else counted(number, kind)


def _of_metadata(own: OwnDocument) -> Iterator[Block]:
    yield Line(f"{'stays' if own.kept else 'would go'}: it is {own.what}", _tone(own.kept))
    if own.reasons:
        yield Grid(tuple((reason,) for reason in own.reasons))


def _needer(each: SnapshotAnswer) -> tuple[str, ...]:
    verdict = "stays" if each.kept else "would expire"
    named = each.snapshot if each.kind in (SNAPSHOT, RUN) else f"{each.kind} {each.snapshot}"
    return (named, _minute(each.timestamp_ms), verdict, ", ".join(each.refs), "; ".join(each.reasons))


def _minute(at_ms: int | None) -> str:
    return "" if at_ms is None else minute(at_ms)


def _of_snapshot(each: SnapshotAnswer) -> Iterator[Block]:
    named = f" ({', '.join(each.refs)})" if each.refs else ""
    verdict = "stays, because:" if each.kept else "would expire, because nothing keeps it:"
    yield Line(f"snapshot {each.snapshot}{named} of {_minute(each.timestamp_ms)} {verdict}", _tone(each.kept))
    yield Grid(tuple((reason,) for reason in each.reasons))


def _of_check(checked: Checked) -> Iterator[Block]:
    presence = checked.presence
    looked = f"{counted(presence.looked_at, 'file')}, {size(presence.bytes)}, {counted(checked.snapshots, 'snapshot')}"
    yield Line(f"{checked.table}: looked at {looked}")
    if checked.sound:
        yield Line("every file is there", Tone.KEPT)
        return
    yield Line(f"not as the table says: {counted(presence.faults, 'fault')}", Tone.REFUSED)
    tones = (Tone.REFUSED,) * len(presence.listed)
    yield Grid(tuple((each.problem, each.kind, each.path) for each in presence.listed), tones=tones)
    for hint in dict.fromkeys(each.hint for each in presence.listed if each.hint):
        yield Line(f"hint: {hint}")
