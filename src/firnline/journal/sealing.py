"""Seals of run records: whoever can write into a table's folder can write a record, and only one who has the key can
seal it.

Each event is sealed together with the name of its run and the seal before it. The first one says the digest of the
plan, and the plan says those of all parts of the list: so one chain of seals stands for the whole record.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

RECORDS_KEY = "FIRNLINE_RECORDS_KEY"
"""The variable with the operator's key, the same on every machine that works on the tables."""

_PURPOSE = b"firnline run record\n"


@dataclass(frozen=True, slots=True)
class Sealing:
    """With what records are sealed: a key of the operator, which is then `required` of every run that anything is done
    with; else this user's own secret, or nothing where there is none.
    """

    secret: bytes | None = field(default=None, repr=False)
    required: bool = False

    def over(self, stamp: str, before: str, said: Mapping[str, Any]) -> str:
        """Returns the seal of what an event says, in its place after another one; '' without a secret."""
        if self.secret is None:
            return ""
        read_back = json.loads(json.dumps(said))
        text = json.dumps([stamp, before, read_back], sort_keys=True)
        return hmac.new(self.secret, _PURPOSE + text.encode(), "sha256").hexdigest()

    def holds(self, seal: str, stamp: str, before: str, said: Mapping[str, Any]) -> bool:
        """Tells whether this is the seal that one who has the secret gave."""
        return self.secret is not None and hmac.compare_digest(seal.encode(), self.over(stamp, before, said).encode())


UNSEALED = Sealing()
