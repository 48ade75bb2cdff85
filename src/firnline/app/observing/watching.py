"""Everyone who hears of runs, as the configuration and the environment say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firnline.ports.observing.watch import Watch, no_witness

if TYPE_CHECKING:
    from firnline.app.observing.auditing import Auditing


def watch_of(auditing: Auditing) -> Watch:
    """Returns who hears of the runs of this process."""
    return Watch(auditing.witness() or no_witness)
