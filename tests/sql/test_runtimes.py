"""Which sessions read rows through a format's own runtime; test_plain_iceberg.py reads some."""

from __future__ import annotations

import pytest

from firnline.formats.registry import kit_named
from firnline.ports.kits import HasSparkSource
from firnline.sql.session import has_runtime

ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
PAIMON = "/opt/spark/jars/paimon-spark-4.0_2.13-1.3.0.jar"


@pytest.mark.parametrize("setting", ["spark.jars", "spark.jars.packages", "spark.driver.extraClassPath"])
@pytest.mark.parametrize(("format_name", "jar", "other"), [("iceberg", ICEBERG, PAIMON), ("paimon", PAIMON, ICEBERG)])
def test_one_that_a_session_names_in_any_way_is_seen(setting: str, format_name: str, jar: str, other: str) -> None:
    kit = kit_named(format_name)
    assert isinstance(kit, HasSparkSource)
    assert has_runtime({setting: f"mine.jar,{jar}"}.get, kit.runtime)
    assert not has_runtime({setting: other}.get, kit.runtime)
    assert not has_runtime({}.get, kit.runtime)
