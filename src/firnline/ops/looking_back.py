"""What became of a batch: whether anything that went was taken up again while it went.

1. A purge looks at the table: nobody needs the file.
2. A writer commits a snapshot that names the file under its old path.
3. The delete of the batch arrives.

No store can tell a delete to wait for a commit, so a file can be lost in that moment. It must not be lost in silence:
the look before the next batch is also one after the last, and a look of its own follows the last batch of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from firnline.errors import ObjectNotFound, RefusedForSafety, TakenUpAgain
from firnline.journal.outcomes import Outcome, Row
from firnline.journal.runs import Run
from firnline.ops.guards import Guard
from firnline.ops.workplace import Workplace

_GONE = (Outcome.DELETED, Outcome.MISSING)
_NAMED = 5


def refuse_taken_up(work: Workplace, run: Run, guard: Guard, batch: Sequence[Row]) -> None:
    """Raises TakenUpAgain, naming the files, where something names by the guard's last look what this batch removed.

    A file that was written anew under its old name is there: then nothing was lost.
    """
    named = (row.key for row in batch if row.outcome in _GONE and guard.is_news(row.key))
    lost = [key for key in named if not _is_there(work, key)]
    if lost:
        more = f" and {len(lost) - _NAMED:,} more" if len(lost) > _NAMED else ""
        raise TakenUpAgain(
            f"a commit named files again while {run.id} deleted them, and they are gone: "
            f"{', '.join(lost[:_NAMED])}{more}",
            hint="the run stopped. Bring the files back (versions of the bucket, a backup), or take the snapshots out "
            f"that name them: `firnline check {quote(run.id.table)}` lists all. Then "
            f"`firnline resume {quote(str(run.id))}` goes on",
        )


def look_again(work: Workplace, run: Run, guard: Guard, batch: Sequence[Row]) -> None:
    """Looks at the table before a batch, and so after the last one; raises as above, or as the guard does.

    A look that stops the run, since another registration of the table came up, also tells what that one lost.
    """
    try:
        guard.look_again()
    except RefusedForSafety:
        refuse_taken_up(work, run, guard, batch)
        raise
    refuse_taken_up(work, run, guard, batch)


def look_back(work: Workplace, run: Run, guard: Guard, batch: Sequence[Row]) -> None:
    """Looks at the table once more, where no other batch follows that would; raises as above."""
    if batch:
        look_again(work, run, guard, batch)


def _is_there(work: Workplace, key: str) -> bool:
    try:
        work.store.head(key)
    except ObjectNotFound:
        return False
    return True
