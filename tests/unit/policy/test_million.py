"""A million snapshots fit: graph and decision together stay under 1 GiB of resident memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

FULL = bool(os.environ.get("FIRNLINE_FULL"))
PROGRAM = r"""
import json, re, sys, time
from firnline.model.graph import Graph
from firnline.model.snapshots import Ref, RefKind, Snapshot
from firnline.policy.decide import decide
from firnline.policy.native import NativeRetention
from firnline.policy.periods import Period
from firnline.policy.policy import Level, Policy, Setting, Source
from firnline.policy.rules import KeepLast, KeepPeriods, KeepTags, KeepWithin

COUNT, MINUTE, FIRST = 1_000_000, 60_000, 3_051_729_675_574_597_004
NOW = 1_787_400_000_000

def snapshots():
    parent = None
    for number in range(COUNT):
        name = str(FIRST + number * 7_919)
        yield Snapshot(name, parent, NOW - (COUNT - number) * MINUTE, "append")
        parent = name

def ref(name, number, kind=RefKind.BRANCH):
    return name, Ref(name, kind, str(FIRST + number * 7_919))

RULES = {
    "native": [],
    "native, all stay": [],
    "firnline, all stay": [
        KeepLast(None), KeepWithin(10**15), KeepTags(("v*",)), *(KeepPeriods(period) for period in Period)
    ],
}
start = time.process_time()
graph = Graph(snapshots())
refs = dict([ref("main", COUNT - 1), ref("dev", COUNT // 2), ref("v1", 5, RefKind.TAG), ref("v2", 9, RefKind.TAG)])
loaded = time.process_time()
for mode in sys.argv[1:]:
    began = time.process_time()
    native = NativeRetention(10**15 if "all" in mode else 86_400_000 * 300, 1)
    policy = Policy(tuple(Setting(rule, Source(Level.ASKED)) for rule in RULES[mode]))
    decision = decide(graph, refs, refs["main"].snapshot, native, policy, now_ms=NOW)
    done = time.process_time()
    # Of this very program: what getrusage tells counts the process as well that started it.
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1]) * 1024
    print(json.dumps({
        "mode": mode, "kept": len(decision.kept), "expired": len(decision.expired), "peak": peak,
        "load": loaded - start, "decide": done - began,
    }))
    del decision
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it")
@pytest.mark.slow
def test_a_million_snapshots_stay_under_one_gib(capsys: pytest.CaptureFixture[str]) -> None:
    """One graph, decided on by the smallest policy and by the largest: the graph takes most of the time to make."""
    modes = ["native", *(["native, all stay"] if FULL else []), "firnline, all stay"]
    run = subprocess.run([sys.executable, "-c", PROGRAM, *modes], capture_output=True, text=True, check=True)
    said = [json.loads(line) for line in run.stdout.splitlines()]
    assert [seen["mode"] for seen in said] == modes
    for seen in said:
        mode, peak = seen["mode"], seen["peak"]
        with capsys.disabled():
            print(f"\n{mode}: load {seen['load']:.1f} s, decide {seen['decide']:.1f} s, {peak / 2**20:.0f} MiB")
        assert seen["kept"] + seen["expired"] == 1_000_000
        assert seen["kept"] == 1_000_000 if "all" in mode else 1 < seen["kept"] < 600_000
        assert peak < 2**30
