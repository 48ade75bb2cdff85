"""A hold on the whole table, in words that Paimon's writers go by: `gc.enabled` means nothing to them.

They expire at every commit, by the options that they found when they started. So the hold writes options with which
they expire nothing, of every branch, and notes what these said before; when the last hold goes, they say it again.
"""

from __future__ import annotations

from collections.abc import Mapping

from firnline.formats.paimon.branches import Branch
from firnline.formats.paimon.options import Before, as_before
from firnline.formats.paimon.quiet import quiet_options

_TAGS = {"tag.time-expire-enabled": "false"}
"""Writers also delete tags whose time is over."""

Options = dict[str, dict[str, str]]


def held(branches: Mapping[str, Branch], options: Options, before: Before) -> tuple[Options, Before]:
    """Returns the options of each branch with which its writers expire nothing, and what they said before."""
    wanted = {**quiet_options(branches), **_TAGS}
    after: Options = {}
    noted: Before = {}
    for name, said in options.items():
        over = {each: said.get(each) for each, value in wanted.items() if said.get(each) != value}
        noted[name] = {**over, **before.get(name, {})}
        after[name] = {**said, **wanted}
    return after, {name: over for name, over in noted.items() if over}


def released(branches: Mapping[str, Branch], before: Before) -> Options:
    """Returns the options of each branch as they were. Where one was changed since the hold, those that go with it stay
    as they are too: the lowest number of one time and the highest of another may contradict each other.
    """
    wanted = {**quiet_options(branches), **_TAGS}
    found: Options = {}
    for name, branch in branches.items():
        changed = {_group(each) for each, value in wanted.items() if branch.schema.options.get(each) != value}
        ours = {each: value for each, value in before.get(name, {}).items() if _group(each) not in changed}
        found[name] = as_before(branch, {name: ours})
    return found


def _group(option: str) -> str:
    return option.partition(".")[0]
