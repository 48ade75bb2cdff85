"""A relation as a DataFrame of the data source, made here: Spark would start a Python process to ask for its schema."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from firnline.ports.formats import State
from firnline.settings import find_config
from firnline.sql.asking import asked_of, open_relation
from firnline.sql.source import PUSHDOWN, spark_schema


def source_options(
    spark: SparkSession, what: str, state: State | None, config: str | None, more: Mapping[str, str | None]
) -> dict[str, str]:
    """Returns the options with which Spark reads a relation."""
    more = {"pushdown": spark.conf.get(PUSHDOWN, "false"), **more}
    return {**relation_options(what, state, config), **{name: value for name, value in more.items() if value}}


def relation_options(what: str, state: State | None, config: str | None) -> dict[str, str]:
    """Returns the options that name a relation of one version of a table, or of the whole lake if `state` is None."""
    options = {
        "table": state and state.table,
        "what": what,
        "version": state and state.fence,
        "config": _config_file(config),
        "home": os.environ.get("PYICEBERG_HOME"),
    }
    return {name: value for name, value in options.items() if value}


def source_frame(spark: SparkSession, source: str, options: Mapping[str, str]) -> DataFrame:
    """Returns all rows and columns of a relation; `source` is the name that the data source is registered by."""
    schema = open_relation(asked_of(options))[0].schema
    return spark.read.format(source).schema(spark_schema(schema, None)).options(**sent_options(options)).load()


def sent_options(options: Mapping[str, str]) -> dict[str, str]:
    """Returns what Spark is told: to a server of Spark Connect no name of a file here, it was sent what they say."""
    return {name: value for name, value in options.items() if not is_remote() or name not in ("config", "home")}


def _config_file(config: str | None) -> str | None:
    found = find_config(config)
    return None if found is None else str(found.absolute())
