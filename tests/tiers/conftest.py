from __future__ import annotations

import pytest

from tests.tiers.java_spark import JavaSpark


@pytest.fixture(scope="session")
def spark(java_session: JavaSpark) -> JavaSpark:
    return java_session
