"""The Output port: commands say what they have, and never print."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Protocol, TextIO

from firnline.errors import FirnlineError
from firnline.foreign import harmless, harmless_json
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
        print(f"error: {harmless(problem.message)}", file=sys.stderr)
        if problem.hint:
            print(f"\nhint: {harmless(problem.hint)}", file=sys.stderr)


class JsonOutput:
    def show(self, page: Page, facts: Mapping[str, Any]) -> None:
        print(_fitting(sys.stdout, facts, indent=2))

    def fail(self, problem: FirnlineError) -> None:
        said = {"kind": problem.kind, "message": problem.message, "hint": problem.hint}
        print(_fitting(sys.stderr, {"error": said}), file=sys.stderr)


def _fitting(target: TextIO, facts: Mapping[str, Any], indent: int | None = None) -> str:
    """Returns the facts as JSON, with what the target does not have, or would obey, as JSON's own escapes."""
    text = harmless_json(json.dumps(facts, indent=indent, ensure_ascii=False))
    try:
        text.encode(target.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(facts, indent=indent)
    return text


def output_for(as_json: bool) -> Output:
    return JsonOutput() if as_json else TextOutput()
