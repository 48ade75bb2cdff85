"""The Output port: commands say what they have, and never print."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Protocol

from firnline.errors import FirnlineError
from firnline.plans.pages import Page


class Output(Protocol):
    def show(self, page: Page, facts: Mapping[str, Any]) -> None:
        """Says a result: as a page for people, or as facts for programs."""
        ...

    def fail(self, problem: FirnlineError) -> None:
        """Says why a command could not do its work, and what would help."""
        ...


class TextOutput:
    def show(self, page: Page, facts: Mapping[str, Any]) -> None:
        print(page.to_text())

    def fail(self, problem: FirnlineError) -> None:
        print(f"error: {problem.message}", file=sys.stderr)
        if problem.hint:
            print(f"\nhint: {problem.hint}", file=sys.stderr)


class JsonOutput:
    def show(self, page: Page, facts: Mapping[str, Any]) -> None:
        print(json.dumps(facts, indent=2, ensure_ascii=False))

    def fail(self, problem: FirnlineError) -> None:
        said = {"kind": problem.kind, "message": problem.message, "hint": problem.hint}
        print(json.dumps({"error": said}, ensure_ascii=False), file=sys.stderr)


def output_for(as_json: bool) -> Output:
    return JsonOutput() if as_json else TextOutput()
