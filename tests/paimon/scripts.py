"""Short worlds that are told step by step: what random ones seldom come to, on random tables."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from harness.paimon.worlds import Paimon

from .neighbourhood import Neighbourhood
from .scene import Scene
from .small import EVERYTHING_OLD
from .steps import Steps
from .worlds import grown

ALL_BUT_THE_LAST = {**EVERYTHING_OLD, "retain_last": 1}
LENGTH = 4
Script = Callable[[Steps], None]


def writers_begin_under_a_hold(steps: Steps) -> None:
    """The options of the table let its writers expire; the job that runs in the end was started under the hold."""
    steps.around.take("start_job")
    steps.around.take("rewrite")
    steps.hold_the_table()
    steps.around.jobs.clear()
    steps.around.take("start_job")
    steps.around.take("job_commits")
    steps.around.take("job_commits")


def a_hold_comes_before_a_commit(steps: Steps) -> None:
    steps.around.take("rewrite")
    steps.hold_the_table()
    steps.expire(ALL_BUT_THE_LAST)


def a_hold_comes_before_a_purge(steps: Steps) -> None:
    steps.around.take("rewrite")
    steps.expire_later(ALL_BUT_THE_LAST)
    steps.hold_the_table()
    steps.resume()


def a_view_has_more_than_the_table(steps: Steps) -> None:
    """Iceberg metadata keeps the snapshots that Paimon had at its last commit."""
    steps.around.take("mirror")
    steps.around.take("rewrite")
    steps.around.take("rewrite")
    steps.expire(ALL_BUT_THE_LAST)


def a_view_is_in_the_warehouse_and_the_table_behind_a_link(steps: Steps) -> None:
    """Where the catalog keeps the view follows from the folder of the table, which the link does not tell."""
    steps.scene.by_link = True
    steps.around.take("mirror_for_a_catalog")
    steps.around.take("rewrite")
    steps.around.take("rewrite")
    steps.expire(ALL_BUT_THE_LAST)


def a_table_gets_another_name(steps: Steps) -> None:
    """A run that can be undone was planned under the first one, and a hold names what it took."""
    steps.around.take("rewrite")
    steps.expire_later(ALL_BUT_THE_LAST)
    steps.hold_what_went()
    steps.around.take("rename")
    steps.orphans()


SCRIPTS: dict[str, Script] = {
    each.__name__: each
    for each in (
        writers_begin_under_a_hold,
        a_hold_comes_before_a_commit,
        a_hold_comes_before_a_purge,
        a_view_has_more_than_the_table,
        a_view_is_in_the_warehouse_and_the_table_behind_a_link,
        a_table_gets_another_name,
    )
}


def play_script(both: Paimon, seed: int, counts: Counter[str], name: str) -> None:
    """Plays a script on the table of a seed. Raises AssertionError where anything was lost."""
    rng = random.Random(seed)
    with grown(both, seed, LENGTH) as world:
        scene = Scene(both, world, rng, counts, calm=True)
        SCRIPTS[name](Steps(scene, Neighbourhood(scene)))
