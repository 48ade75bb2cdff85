"""News of a run: one stage that it entered, or could not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from firnline.foreign import concealed
from firnline.model.times import format_instant


@dataclass(frozen=True, slots=True)
class News:
    """What happened to a run: `after` is the state it was in (None: it is new), `state` the one it enters.

    `error` is the kind of the error for which it stays where it was. `figures` are counts such as files and bytes,
    `words` what persons said: who approved, which case. `plan` is the digest of the run's plan, `took_ms` how long the
    run was in the state before. Passwords of addresses do not get in.
    """

    run: str
    table: str
    kind: str
    after: str | None
    state: str
    at_ms: int
    figures: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    plan: str | None = None
    took_ms: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns it for logs, webhooks and the audit log."""
        return {
            "run": concealed(self.run),
            "table": concealed(self.table),
            "kind": self.kind,
            "from": self.after,
            "to": self.state,
            "at": format_instant(self.at_ms),
            "took_ms": self.took_ms,
            "figures": dict(self.figures),
            "words": {name: concealed(said) for name, said in self.words.items()},
            "error": self.error,
            "plan": self.plan,
        }
