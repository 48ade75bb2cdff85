"""The examples of `deploy`: the command that each of them runs does a round on a real lake."""

from __future__ import annotations

import ast
import configparser
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from firnline.cli.main import run
from tests.neighbours.lakes import RealLake
from tests.worker.lakes import snapshots, worked_lake

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    with worked_lake(tmp_path, monkeypatch, tables=1) as made:
        yield made


def of_systemd() -> list[str]:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "firnline-worker.service")
    assert int(unit["Service"]["TimeoutStopSec"]) > 30
    return shlex.split(unit["Service"]["ExecStart"])[1:]


def of_kubernetes() -> list[str]:
    job = yaml.safe_load((DEPLOY / "cronjob.yaml").read_text())
    assert (job["kind"], job["apiVersion"]) == ("CronJob", "batch/v1")
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > 30
    mounted = {each["name"] for each in pod["containers"][0]["volumeMounts"]}
    assert mounted == {each["name"] for each in pod["volumes"]}
    return list(map(str, pod["containers"][0]["args"]))


def of_airflow() -> list[str]:
    tree = ast.parse((DEPLOY / "airflow_dag.py").read_text())
    said = [each.value for each in ast.walk(tree) if isinstance(each, ast.keyword) and each.arg == "bash_command"]
    return shlex.split(ast.literal_eval(said[0]))[1:]


@pytest.mark.parametrize("of", [of_systemd, of_kubernetes, of_airflow], ids=["systemd", "kubernetes", "airflow"])
def test_its_command_does_a_round(of: object, lake: RealLake) -> None:
    assert callable(of)
    command: list[str] = of()
    real = {
        "/etc/firnline/firnline.yaml": str(lake.folder / "firnline.yaml"),
        "/var/lib/firnline/memory.json": str(lake.folder / "memory.json"),
    }
    assert set(real) <= set(command)
    words = [real.get(word, word) for word in command]
    assert run([*words, *(() if "--once" in words else ("--once",))]) == 0
    assert snapshots(lake, "t0") == 2
    assert (lake.folder / "memory.json").is_file()


def test_the_container_is_built_from_what_is_here() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    copied = [word for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE) for word in line.split()[:-1]]
    assert copied
    for each in copied:
        assert (DEPLOY.parent / each).exists(), each
    assert "--constraint /src/requirements.lock" in text
    extras = re.findall(r"'/src\[(.+)\]'", text)[0].split(",")
    known = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) <= set(known)
    assert 'ENTRYPOINT ["/opt/firnline/bin/firnline"]' in text
    sent = (DEPLOY.parent / ".dockerignore").read_text().splitlines()
    assert {f"!{each}" for each in copied} <= set(sent)
    assert "*" in sent


def test_the_container_and_the_job_agree_on_a_user_who_may_write_the_memory() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    user = re.findall(r"^USER (\d+):\1$", text, re.MULTILINE)
    assert f"--uid {user[0]} firnline" in text
    assert "install -d -o firnline -g firnline /var/lib/firnline" in text
    assert text.index("WORKDIR /etc/firnline") < text.index("\nUSER "), "else the worker could write its own settings"
    pod = yaml.safe_load((DEPLOY / "cronjob.yaml").read_text())["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    said = pod["securityContext"]
    assert {str(said[each]) for each in ("runAsUser", "runAsGroup", "fsGroup")} == set(user)
