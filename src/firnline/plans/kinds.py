"""What a run does, by the word that its record has for it. Who only reads records needs no more of the others."""

from __future__ import annotations

EXPIRY = "expiry"
ORPHANS = "orphans"
ERASURE = "erasure"
