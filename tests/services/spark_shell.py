"""A Spark session with Iceberg in a process of its own: one SQL statement a line in, its rows a line out, both JSON.

python spark_shell.py JARS SETTINGS: a list of jar files separated by commas, and a JSON object of Spark settings.
"""

from __future__ import annotations

import json
import os
import sys

from pyspark.sql import SparkSession

ANSWER = "answer: "


def session(jars: str, catalogs: dict[str, str]) -> SparkSession:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",  # the tables are tiny: compiling takes longer than reading
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.log.level": "ERROR",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        **catalogs,
    }
    builder = SparkSession.builder.master("local[1]").appName("another engine")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main() -> None:
    spark = session(sys.argv[1], json.loads(sys.argv[2]))
    for line in sys.stdin:
        rows = [list(row) for row in spark.sql(json.loads(line)).collect()]
        print(ANSWER + json.dumps(rows, default=str), flush=True)


if __name__ == "__main__":
    main()
