"""Asking a store what it really does, with objects of our own that are gone again afterwards.

Servers that call themselves S3 differ in just what matters here: one ignores If-Match on a delete and deletes, another
lets two conditional writes win. So every promise that a run stands on is tried before it is relied on.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from firnline.model.locations import join, parse_location
from firnline.ports.probe import Capabilities, Surroundings, no, unknown, yes
from firnline.stores.buckets import Buckets
from firnline.stores.keys import folder_key

_OF_ITSELF = ("file", "memory")


class StoreProbe:
    """Probes the stores of one catalog's settings."""

    def __init__(self, properties: Mapping[str, str] | None = None, now: Callable[[], float] = time.time) -> None:
        self._properties = dict(properties or {})
        self._buckets = Buckets(self._properties)
        self._now = now

    def surroundings(self, location: str) -> Surroundings:
        key = folder_key(location)
        if key.scheme in _OF_ITSELF:
            return Surroundings(no("no versions are kept"), no("there is no object lock"))
        if key.scheme != "s3":
            return Surroundings(unknown("cannot be asked here"), unknown("cannot be asked here"))
        from firnline.stores.surroundings import locked, versioned

        client = self._buckets.s3().client
        return Surroundings(versioned(client, key), locked(client, key))

    def probe(self, folder: str, doomed: Sequence[str] = ()) -> Capabilities:
        surroundings = self.surroundings(folder)
        remote = [each for each in doomed if parse_location(each).scheme not in _OF_ITSELF]
        if not remote and parse_location(folder).scheme in _OF_ITSELF:
            return _trusted(folder, surroundings)
        from firnline.stores.trial import Trial

        trial = Trial(join(folder, "probe", secrets.token_hex(8)), self._properties, self._buckets)
        if parse_location(folder).scheme in _OF_ITSELF:
            return replace(_trusted(folder, surroundings), delete=trial.delete_in(remote))
        try:
            return trial.run(folder, remote, surroundings, self._now)
        finally:
            trial.clean_up()


def _trusted(place: str, surroundings: Surroundings) -> Capabilities:
    """Local files and memory: the operating system is asked at every call, and its promises are known."""
    own = yes("local: no probing needed")
    return Capabilities(place, own, own, own, own, own, no("there are no ETags to match here"), own, surroundings, 0)
