"""The recipes of the page about clusters, run as the page has them: only the hosts are this machine's."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

import firnline
from demo import lake
from firnline.spark.executors.shipping import distributions
from tests.docs.pages import DOCS, blocks

from .clusters import INSTALLED, SOURCE, Cluster, first_on_path, free_port, python_without, surroundings

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("clusters")]
full = pytest.mark.skipif(not os.environ.get("FIRNLINE_FULL"), reason="runs with FIRNLINE_FULL=1 (make test-full)")
PAGE = DOCS / "guides" / "clusters.md"
MASTER, TABLE = "spark://spark.internal:7077", "lake.artemis.telemetry"

OF_EXTRAS = ("grpcio", "grpcio-status", "pandas", "psycopg-binary")
"""What firnline requires by extras of other packages."""


def recipe(*words: str, language: str = "sh") -> str:
    """Returns the one block of the page that has all of these words."""
    (found,) = [block for block in blocks(PAGE, language) if all(word in block for word in words)]
    return found


@pytest.fixture(scope="module")
def tiny_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lake, the page's job, and a policy by which files would go."""
    folder: Path = tmp_path_factory.mktemp("lake")
    lake.build(folder, int((time.time() - 40 * 86_400) * 1000), days=2)
    (folder / "firnline.yaml").write_text("keep: {last: 1}\n")
    (folder / "job.py").write_text(recipe("several(sys.argv[1:])", language="py"))
    return folder


@pytest.fixture
def inside(tiny_lake: Path, tmp_path: Path) -> dict[str, str]:
    """The surroundings of a submitted job, in a folder that has the lake: its driver's Python has no firnline."""
    around = {**surroundings(tmp_path), "PYICEBERG_HOME": str(tiny_lake)}
    driver = python_without(tmp_path / "driver")
    around["PATH"] = f"{around['SPARK_HOME']}/bin{os.pathsep}{around['PATH']}"
    return {**first_on_path(Path(sys.executable), around), "PYSPARK_DRIVER_PYTHON": str(driver)}


def run(block: str, folder: Path, around: Mapping[str, str], **hosts: str) -> list[str]:
    """Returns the lines that the commands of a block printed; fails with all that they said if one fails."""
    for name, real in hosts.items():
        assert name in block
        block = block.replace(name, real)
    command = ["bash", "-euc", block]
    ran = subprocess.run(
        command, cwd=folder, env=dict(around), capture_output=True, text=True, timeout=900, check=False
    )
    assert ran.returncode == 0, ran.stdout[-2_000:] + ran.stderr[-6_000:]
    return ran.stdout.splitlines()


def planned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns the line that the job must print: what the local engine plans."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYICEBERG_HOME", str(folder))
    files = firnline.open(engine="local").plan(TABLE).plan.victims.all.files
    assert files
    return f"{TABLE} {files}"


@pytest.mark.full
def test_firnline_as_a_zip(
    tiny_lake: Path, inside: dict[str, str], small_standalone: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors have neither firnline nor all that it needs; the driver's Python has no firnline."""
    block = recipe("zipfile", "--py-files")
    assert planned(tiny_lake, monkeypatch) in run(block, tiny_lake, inside, **{MASTER: small_standalone.master})


@full
def test_a_packed_environment(
    tiny_lake: Path, inside: dict[str, str], small_standalone: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is made here of what is installed, in place of the page's `pip install`."""
    assert "-m venv env" in recipe("pip install 'firnline")
    environment(tiny_lake / "env")
    block = recipe("tar", "--archives", MASTER)
    assert planned(tiny_lake, monkeypatch) in run(block, tiny_lake, inside, **{MASTER: small_standalone.master})
    assert not list(Path(inside["XDG_CACHE_HOME"]).rglob("*.tar.gz")), "something was sent, though all was there"


def environment(folder: Path) -> None:
    """Makes an environment with copies of firnline and of what it needs."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    everything = distributions(["firnline", *OF_EXTRAS])
    for each in (everything[name] for name in everything.keys() - {"firnline", "pyspark"}):
        for file in each.files or ():
            source = Path(str(each.locate_file(file)))
            if ".." not in file.parts and source.is_file():
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, site / file)
    shutil.copytree(Path(SOURCE) / "firnline", site / "firnline", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "pyspark").symlink_to(INSTALLED)


@pytest.fixture
def api() -> Iterator[tuple[str, list[Any]]]:
    """A server that stands for Kubernetes: it says yes to everything, and keeps what it was asked to make."""
    made: list[Any] = []

    class Yes(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            said = json.loads(body) if body else {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": []}
            made.append((self.command, self.path, said))
            answer = json.dumps({**said, "metadata": {**said["metadata"], "uid": "a-uid"}}).encode()
            self.send_response(201 if self.command == "POST" else 200)
            for name, value in (("Content-Type", "application/json"), ("Content-Length", str(len(answer)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PATCH = _answer

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Yes) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", made
        server.shutdown()


def manifest() -> dict[str, dict[str, Any]]:
    """Returns the objects of the page's manifest by their kinds."""
    return {each["kind"]: each for each in yaml.safe_load_all(recipe("kind: CronJob", language="yaml"))}


def settings(command: str) -> dict[str, str]:
    words = shlex.split(command)
    pairs = [tuple(words[at + 1].split("=", 1)) for at, word in enumerate(words) if word == "--conf"]
    return dict(pairs)


@full
def test_kubernetes_gets_the_pod_that_the_manifest_has_rights_for(
    tiny_lake: Path, inside: dict[str, str], api: tuple[str, list[Any]]
) -> None:
    address, made = api
    run(recipe("k8s://", "spark-submit"), tiny_lake, inside, **{"https://kubernetes.internal:6443": address})
    (pod,) = [said for verb, path, said in made if verb == "POST" and path.partition("?")[0].endswith("/lake/pods")]
    container, account = pod["spec"]["containers"][0], manifest()["ServiceAccount"]["metadata"]
    assert container["args"][0] == "driver"
    assert container["args"][-2:] == ["local:///opt/firnline/job.py", TABLE]
    assert pod["spec"]["serviceAccountName"] == account["name"]
    asked = yaml.safe_load_all(recipe("kind: CronJob", language="yaml"))
    assert {each["metadata"]["namespace"] for each in asked} == {account["namespace"]} == {"lake"}
    assert container["image"] == nightly()["image"]


def nightly() -> dict[str, Any]:
    (found,) = manifest()["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_the_manifest_agrees_with_itself() -> None:
    found = manifest()
    pod = found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (subject,) = found["RoleBinding"]["subjects"]
    assert pod["serviceAccountName"] == subject["name"] == found["ServiceAccount"]["metadata"]["name"]
    assert found["RoleBinding"]["roleRef"]["name"] == found["Role"]["metadata"]["name"]
    around = {each["name"]: each.get("value", "") for each in nightly()["env"]}
    said = settings(around["PYSPARK_SUBMIT_ARGS"])
    assert said["spark.kubernetes.container.image"] == nightly()["image"]
    assert said["spark.kubernetes.namespace"] == found["CronJob"]["metadata"]["namespace"]
    assert said["spark.driver.host"].strip("$()") in around
    assert around["PYSPARK_SUBMIT_ARGS"].endswith("pyspark-shell")
    assert nightly()["command"][0] == "firnline"


@full
def test_spark_reads_the_command_for_yarn(tiny_lake: Path, inside: dict[str, str], tmp_path: Path) -> None:
    """As far as a cluster is asked that is not there."""
    told = {
        "yarn.resourcemanager.address": f"127.0.0.1:{free_port()}",
        "yarn.resourcemanager.connect.max-wait.ms": "1",
        "ipc.client.connect.max.retries": "0",
    }
    listed = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in told.items())
    (tmp_path / "yarn-site.xml").write_text(f"<configuration>{listed}</configuration>")
    (tiny_lake / "env.tar.gz").touch()
    (tiny_lake / ".pyiceberg.yaml").touch()
    around = {**inside, "HADOOP_CONF_DIR": str(tmp_path)}
    command = ["bash", "-euc", recipe("--master yarn", "spark-submit")]
    ran = subprocess.run(command, cwd=tiny_lake, env=around, capture_output=True, text=True, timeout=900, check=False)
    assert ran.returncode
    assert "ResourceManager" in ran.stderr
    assert "onnection refused" in ran.stderr, ran.stderr[-6_000:]
