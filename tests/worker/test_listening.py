"""A worker tells of itself at a local port: what it did, and whether it still moves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.worker.lakes import worked_lake

FIRNLINE = str(Path(sys.executable).with_name("firnline"))


def test_metrics_and_health_are_answered_while_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with worked_lake(tmp_path, monkeypatch) as lake:
        secret = "planted-secret-4711"
        lake.policy += f"webhook: http://user:{secret}@127.0.0.1:9/hook\naudit: {tmp_path}/audit\n"
        (tmp_path / "firnline.yaml").write_text(lake.policy)
        command = [FIRNLINE, "--log", "json", "worker", "--config", str(tmp_path / "firnline.yaml")]
        own = ["--memory", str(tmp_path / "m.json"), "--listen", "0", "--engine", "local", "--json"]
        process = subprocess.Popen(
            [*command, *own], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}, text=True
        )
        assert process.stderr is not None
        place = process.stderr.readline().strip()
        assert place.startswith("http://127.0.0.1:"), place
        metrics = wait_for(place, 'firnline_run_moves_total{table="lake.db.t0",kind="expiry",state="done"} 1')
        with urlopen(place.replace("/metrics", "/healthz"), timeout=10) as answered:
            assert json.load(answered)["silent_seconds"] < 600
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=40)
        assert process.returncode == 0, err
        assert '"looked_at": 3' in out
        written = b"".join(
            each.read_bytes() for each in tmp_path.rglob("*") if each.is_file() and each.name != "firnline.yaml"
        )
        for told in (metrics, out, err, written.decode(errors="replace")):
            assert secret not in told
        assert list((tmp_path / "audit").rglob("*.json"))


def wait_for(place: str, line: str) -> str:
    for _ in range(300):
        with urlopen(place, timeout=10) as answered:
            said: str = answered.read().decode()
        if line in said:
            return said
        time.sleep(0.2)
    raise AssertionError(said)
