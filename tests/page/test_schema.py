"""Whatever the OpenAPI document allows is asked for: no answer is an error of firnline's own, and each is one that the
document names.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from .conftest import TABLE, TOKEN, OpenPage

EXAMPLES = 200 if os.environ.get("FIRNLINE_FULL") else 4


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize(("token", "named"), [(TOKEN, {}), (TOKEN, {"name": TABLE, "table": TABLE}), ("wrong", {})])
def test_no_call_ends_in_an_error_of_our_own(page: OpenPage, token: str, named: dict[str, str]) -> None:
    """`named` stands where the document only asks for a text: no drawn one is a table's name."""
    import schemathesis

    schema = schemathesis.openapi.from_url(f"{page.address}/openapi.json")
    asked = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        asked.add(operation.path)
        _ask(operation, token, named)
    assert asked == set(page.facts("/openapi.json")["paths"])


def _ask(operation: Any, token: str, named: dict[str, str]) -> None:
    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy())
    def asks(case: Any) -> None:
        for part in (case.query, case.body):
            if isinstance(part, dict):
                part.update({name: text for name, text in named.items() if name in part})
        answer = case.call(headers={"Authorization": f"Bearer {token}"}, timeout=60)
        assert answer.status_code < 500 or answer.status_code == 502, answer.text
        assert str(answer.status_code) in operation.definition.raw["responses"], (answer.status_code, answer.text)
        if operation.method == "post" and token != TOKEN:
            assert answer.status_code in (400, 401, 429)

    asks()


def test_the_document_names_every_call_and_what_it_takes(still: OpenPage) -> None:
    facts = still.facts("/openapi.json")
    assert facts["openapi"].startswith("3.")
    for path, methods in facts["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"]
            assert ("security" in operation) == (method == "post"), path
