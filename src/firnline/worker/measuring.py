"""What a store takes, where the operator wants it measured."""

from __future__ import annotations

import logging

from firnline.app.places import Places
from firnline.errors import FirnlineError
from firnline.policy.worker.keys import WorkerPolicy


def measured_reads(places: Places, policy: WorkerPolicy) -> float | None:
    """Returns how many reads a second the store of the first table answers that can be asked; None where none can: then
    the usual rates count.
    """
    try:
        found = places.catalogs.chosen(policy.tables or None).tables
    except FirnlineError:
        return None
    for name in found:
        try:
            rate = places.stores.measure(name, places.source(name).load().location)
        except FirnlineError:
            continue
        if rate is not None:
            logging.getLogger("firnline").info("the store of %s answers %.0f reads a second", name, rate)
            return rate
    return None
