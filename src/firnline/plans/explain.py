"""A plan as a page: the same list of stages that a run would carry out, in words."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from firnline.model.times import minute
from firnline.plans.pages import Block, Drawn, Grid, Hint, Line, Page, Tone, counted, size, tally
from firnline.plans.plan import Plan
from firnline.plans.stages import in_words
from firnline.ports.engines import SPARED_REASONS

SHOWN = 20
_COLUMNS = ("snapshot", "time (UTC)")


def explain(plan: Plan, everything: bool = False) -> Page:
    """Returns what a person reads before anything changes; long lists are cut unless `everything` is asked for."""
    every = len(plan.keep) + len(plan.expire) + len(plan.kept_side_objects) + len(plan.expired_side_objects)
    every = max(every, 2 * len(plan.drawing.before) if plan.drawing else 0)
    return Page(tuple(_blocks(plan, every if everything else SHOWN)))


def _blocks(plan: Plan, shown: int) -> Iterator[Block]:
    snapshots = counted(len(plan.keep) + len(plan.expire), "snapshot")
    yield Line(f"{plan.table} ({plan.format}), {snapshots}, {counted(_refs(plan), 'ref')}")
    yield Line(f"policy: {plan.policy}")
    yield from _keep(plan, shown)
    yield from _expire(plan, shown)
    yield from _drawing(plan, shown)
    for number, stage in enumerate(plan.stages, 1):
        yield Line(f"{number}. would {in_words(stage)}")
    yield from _archive(plan)
    if plan.orphans is not None:
        from firnline.plans.orphans import listed_blocks, old_enough

        yield from listed_blocks(plan.orphans)
        yield Line(old_enough(plan.orphans))
    yield from _files(plan)
    yield from _ending(plan)
    if plan.metadata_versions is not None and plan.metadata_versions.hint is not None:
        yield Hint(plan.metadata_versions.hint)


def _refs(plan: Plan) -> int:
    return len({ref for each in plan.keep for ref in each.refs} | set(plan.expire_refs))


def _keep(plan: Plan, shown: int) -> Iterator[Block]:
    yield Line(f"keep {len(plan.keep):,}", Tone.KEPT)
    newest = sorted(plan.keep, key=lambda each: -each.timestamp_ms)
    rows = tuple(
        (each.id, minute(each.timestamp_ms), ", ".join(each.refs), ", ".join(each.reasons)) for each in newest[:shown]
    )
    if rows:
        yield Grid(rows, (*_COLUMNS, "refs", "why it stays"), tones=(Tone.KEPT,) * len(rows))
    if len(newest) > shown:
        yield Line(f"  … and {len(newest) - shown:,} older (--list shows them)")


def _expire(plan: Plan, shown: int) -> Iterator[Block]:
    times = [each.timestamp_ms for each in plan.expire]
    span = f", from {minute(min(times))} to {minute(max(times))}" if times else ""
    yield Line(f"expire {len(plan.expire):,}{span}", Tone.GOES if plan.expire else None)
    if times and shown >= len(plan.keep) + len(plan.expire):
        gone = tuple((each.id, minute(each.timestamp_ms)) for each in plan.expire)
        yield Grid(gone, _COLUMNS, tones=(Tone.GOES,) * len(gone))
    if plan.expire_refs:
        yield Line(f"expire refs: {', '.join(plan.expire_refs)}")
    yield from _tagged(plan, shown)
    yield from _beside(plan, shown)


def _drawing(plan: Plan, shown: int) -> Iterator[Block]:
    """Yields the history before and after, where a commit rewrites it."""
    if plan.drawing is None:
        return

    from firnline.plans.graph.text import LEGEND, lines_after, lines_before

    for when, lines in (("before", lines_before(plan.drawing)), ("after", lines_after(plan.drawing))):
        yield Line(f"history {when}")
        more = len(lines) > shown
        yield Drawn(lines[:shown] if more else lines)
        if more:
            yield Line(f"  … and {len(lines) - shown:,} more lines (--list shows them)")
    yield Line(LEGEND)


def _beside(plan: Plan, shown: int) -> Iterator[Block]:
    """Yields what the table has beside snapshots and refs, with the reasons."""
    for verb, found in (("keep", plan.kept_side_objects), ("expire", plan.expired_side_objects)):
        if found:
            yield Line(f"{verb} beside them: {len(found):,}")
            yield Grid(tuple((f"{each.kind} {each.name}", each.why) for each in found[:shown]))
        if len(found) > shown:
            yield Line(f"  … and {len(found) - shown:,} more (--list shows them)")


def _tagged(plan: Plan, shown: int) -> Iterator[Block]:
    """Yields what stays below the range that the format's readers need unbroken."""
    if plan.tagged:
        named = [f"{snapshot} as {tag}" for snapshot, tag in plan.tagged.items()]
        more = f", … and {len(named) - shown:,} more" if len(named) > shown else ""
        yield Line(f"kept below the unbroken range, as a tag: {', '.join(named[:shown])}{more}")


def _archive(plan: Plan) -> Iterator[Block]:
    """Yields what is handed to a tier and what that costs."""
    handed = plan.archive
    if handed is None:
        return
    kind = f" in class {handed.storage_class}" if handed.storage_class else ""
    small = f"; {tally(handed.small)} of it too small for that class" if handed.storage_class else ""
    if handed.bundle is not None:
        small = f"; {tally(handed.large)} of it in bundles of {size(handed.bundle)}, to be restored before a read"
    coming = tally(handed.small + handed.large)
    yield Line(f"to {handed.tier}{kind}, as {handed.table}: at most {coming}{small}")
    if handed.costs is not None:
        costs = handed.costs
        live = f"live {_dollars(costs.live_before)} before, {_dollars(costs.live_after)} after"
        yield Line(f"a month: {live}; {handed.tier} {_dollars(costs.tier_more)} more")
        least = f"{_dollars(costs.at_least)} are owed for the least time of its class"
        yield Line(f"once: {_dollars(costs.puts)} to write; {least}")


def _dollars(amount: float) -> str:
    return f"${amount:,.4f}" if amount < 1 else f"${amount:,.2f}"


def _files(plan: Plan) -> Iterator[Block]:
    by_kind = plan.victims.by_kind
    if by_kind:
        rows = tuple((kind.value, f"{each.files:,}", size(each.bytes)) for kind, each in by_kind.items())
        yield Grid(rows, ("would free", "files", "bytes"), right=frozenset({1, 2}))
    for reason, spared in plan.spared.items():
        yield Line(f"spared, because it {SPARED_REASONS[reason]}: {tally(spared)}")
    if plan.kept is not None:
        yield Line(f"remaining: {tally(plan.kept.all)}")
    if plan.metadata_versions is not None:
        yield Line(f"metadata: {plan.metadata_versions.in_words()}")


def _ending(plan: Plan) -> Iterator[Block]:
    for note in plan.notes:
        yield Line(f"note: {note}")
    if plan.conflict is not None:
        yield Line(f"a run would refuse: {plan.conflict.why}", Tone.REFUSED)
    if plan.refused:
        yield Line(f"a run would refuse: {plan.refused}", Tone.REFUSED)
        yield from _after_years(plan)
    yield Line("nothing was changed" if plan.run is None else f"nothing was changed; saved as run: {plan.run}")
    if plan.conflict is not None:
        yield Hint(plan.conflict.hint)
    elif plan.refused:
        yield from map(Hint, plan.ways_out)
    if plan.refusal is not None:
        return  # a hint to go on would contradict it
    if plan.run is not None:
        yield Hint(f"carry it out with `firnline commit {quote(str(plan.run))}`")
    elif plan.expire:
        files = "" if plan.orphans is not None else ", `--files OUT.parquet` lists the files"
        yield Hint(f"`firnline why TABLE SNAPSHOT` explains one snapshot{files}")
        yield Hint("`firnline expire TABLE`, with the same options, carries it out; it asks first")
    elif plan.by_own_retention and len(plan.keep) > 1 and plan.orphans is None:
        yield Hint("`--keep-last 10`, or another rule, shows what that would free; firnline.yaml has it for good")


def _after_years(plan: Plan) -> Iterator[Block]:
    """Yields why so much would go, and what stays: probably the first run on a table that grew for long."""
    if plan.kept is None or not plan.expire:
        return
    snapshots, times = counted(len(plan.keep), "snapshot"), [each.timestamp_ms for each in plan.keep]
    since = f" since {minute(min(times))}" if times else ""
    yield Line(
        "usual for a table that nothing expired for long: most of its files belong to old snapshots alone. What stays: "
        f"{snapshots}{since}, {tally(plan.kept.all)}"
    )
