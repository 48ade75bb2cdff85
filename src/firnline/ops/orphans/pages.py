"""A search and the run that came of it, as a person reads them: the command and `print` show the same."""

from __future__ import annotations

from firnline.ops.runs.pages.blocks import run_blocks
from firnline.ops.runs.status import RunStatus
from firnline.plans.orphans import OrphanPlan, explain_orphans
from firnline.plans.pages import Grid, Page


def search_page(plan: OrphanPlan, run: RunStatus | None) -> Page:
    """Returns what was found; with a run, without what a plan says of the future: the run says what came of it."""
    found = explain_orphans(plan)
    if run is None:
        return found
    return Page((*(block for block in found.blocks if isinstance(block, Grid)), *run_blocks(run)))
