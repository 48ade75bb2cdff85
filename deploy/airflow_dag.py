"""One round of the worker every night, as a task of Airflow. A problem of a table fails the task, with its report."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow import DAG
from airflow.operators.bash import BashOperator

with DAG(
    dag_id="firnline_worker",
    start_date=datetime(2026, 1, 1),
    schedule="0 22 * * *",
    catchup=False,
    max_active_runs=1,
) as dag:
    BashOperator(
        task_id="round",
        bash_command="firnline worker --once"
        " --config /etc/firnline/firnline.yaml --memory /var/lib/firnline/memory.json",
        execution_timeout=timedelta(hours=8),
        retries=1,
        retry_delay=timedelta(minutes=10),
    )
