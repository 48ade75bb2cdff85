"""The commands that change a table: their exit codes, their JSON, and what they leave alone."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firnline.app.places import now_ms
from firnline.catalogs.sql import SqlCatalog
from firnline.cli.main import run
from firnline.journal import parts
from firnline.journal.lease import Lease, LeaseTimes
from firnline.model.times import DAY_MS, format_instant, parse_instant
from firnline.ports.catalogs import SwapOutcome
from firnline.stores.delete import ObjectDelete
from firnline.stores.objects import ObjectStores
from harness.disks import local
from harness.world import World

EXPIRED = ("s1", "s3", "s4", "s5", "s7")


@dataclass
class Said:
    """What one command answered."""

    code: int
    out: str
    err: str

    @property
    def facts(self) -> dict[str, Any]:
        assert self.code in (0, 1), self.err
        return dict(json.loads(self.out))

    @property
    def error(self) -> dict[str, str]:
        """The error as programs read it: with --json, the last line of stderr."""
        return dict(json.loads(self.err.strip().splitlines()[-1])["error"])


@dataclass
class Shell:
    world: World
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str | Path, as_json: bool = True) -> Said:
        self.capsys.readouterr()
        code = run([*map(str, arguments), *(["--json"] if as_json else [])])
        said = self.capsys.readouterr()
        return Said(code, said.out, said.err)

    def expire(self, grace: str = "1h") -> str:
        """Returns the id of a run that was committed."""
        return str(self("expire", self.world.table, "--grace", grace, "--yes").facts["run"])


@pytest.fixture
def shell(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Shell]:
    """A command line in an empty folder that knows the world's catalog from the environment, as PyIceberg does."""
    for name, value in environment(world).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    handler = signal.getsignal(signal.SIGINT)
    yield Shell(world, capsys)
    signal.signal(signal.SIGINT, handler)


def environment(world: World) -> dict[str, str]:
    return {
        "PYICEBERG_CATALOG__LAKE__TYPE": "sql",
        "PYICEBERG_CATALOG__LAKE__URI": world.pointers.uri,
        "FIRNLINE_ENGINE": "local",
    }


def everything(world: World) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in world.folder.rglob("*") if path.is_file()}


# ---------------------------------------------------------------- 0: it worked


def test_expire_says_what_it_did_and_what_it_waits_for(shell: Shell) -> None:
    world = shell.world
    facts = shell("expire", world.table, "--grace", "1h", "--yes").facts
    assert set(facts) == {
        "run", "kind", "table", "state", "waits_for", "approval", "planned_at", "undo", "commit_due", "grace_ends",
        "planned", "stages_left", "expired", "expired_refs", "outcomes", "left_alone", "events",
    }  # fmt: skip
    assert facts["state"] == "committed"
    assert facts["table"] == world.table
    assert facts["run"].startswith(f"{world.table}@")
    assert facts["waits_for"] == f"the end of grace at {facts['grace_ends']}"
    assert set(facts["expired"]) == {str(world.snapshots[name]) for name in EXPIRED}
    assert facts["expired_refs"] == ["aged"]
    assert facts["planned"]["snapshots"] == len(EXPIRED)
    assert facts["outcomes"] == {}


def test_expire_without_grace_is_done_and_its_totals_add_up(shell: Shell) -> None:
    facts = shell("expire", shell.world.table, "--grace", "0s", "--yes").facts
    assert facts["state"] == "done"
    assert facts["outcomes"]["deleted"] == {
        "files": facts["planned"]["victims"]["files"], "bytes": facts["planned"]["victims"]["bytes"]
    }  # fmt: skip
    shell.world.check()


def test_expire_where_nothing_expires_is_no_run(shell: Shell) -> None:
    Path("firnline.yaml").write_text("keep: {within: 1y, tags: ['*']}\n")
    before = everything(shell.world)
    facts = shell("expire", shell.world.table, "--yes").facts
    assert facts["run"] is None
    assert facts["expire"] == []
    assert everything(shell.world) == before


def test_a_saved_plan_is_committed_purged_and_shown_by_its_id_alone(shell: Shell) -> None:
    planned = shell("plan", shell.world.table, "--save").facts
    named = planned["run"]
    assert shell("runs", "show", named).facts["state"] == "planned"
    assert shell("resume", named).facts["waits_for"] == f"`firnline commit {named}`"
    committed = shell("commit", named).facts
    assert committed["state"] == "committed"
    assert shell("purge", named).facts["waits_for"].startswith("the end of grace")
    assert shell("undo", named).facts["state"] == "undone"
    assert set(shell.world.rows()) == set(shell.world.snapshots.values())


def test_runs_lists_every_run_of_every_table_in_order(shell: Shell) -> None:
    first = shell.expire()
    shell("undo", first)
    second = shell.expire("0s")
    listed = [(each["run"], each["state"]) for each in shell("runs").facts["runs"]]
    assert listed == [(first, "undone"), (second, "done")]
    assert shell("runs", shell.world.table).facts == shell("runs").facts


def test_purge_without_a_name_purges_every_run_that_is_due(shell: Shell) -> None:
    first = shell.expire("1s")
    time.sleep(1.1)
    facts = shell("purge").facts
    assert [(each["run"], each["state"]) for each in facts["runs"]] == [(first, "done")]
    assert shell("purge").facts == {"runs": []}
    shell.world.check()


def test_resume_without_a_name_finishes_what_a_dead_process_left(shell: Shell) -> None:
    named = shell.expire("1s")
    time.sleep(1.1)
    assert [each["state"] for each in shell("resume").facts["runs"]] == ["done"]
    assert shell("resume", named).facts["state"] == "done"
    assert shell("resume", shell.world.table).facts == {"runs": []}


def test_people_read_what_happened_and_how_to_take_it_back(shell: Shell) -> None:
    said = shell("expire", shell.world.table, "--grace", "1h", "--yes", as_json=False)
    assert said.code == 0
    assert "committed, waits for the end of grace" in said.out
    assert "expired: 5 snapshots, 1 ref" in said.out
    assert "hint: `firnline undo lake.db.t@" in said.out
    done = shell("runs", as_json=False)
    assert "committed" in done.out


def test_undo_says_which_refs_it_left_alone(shell: Shell) -> None:
    named = shell.expire()
    shell.world.writer.set_ref("aged", shell.world.snapshots["s9"], "tag")
    said = shell("undo", named, as_json=False)
    assert said.code == 0
    assert "left alone" in said.out
    assert "aged" in said.out


# ---------------------------------------------------------------- check, tag, hold, adopt


def test_check_is_sound_or_names_what_is_not(shell: Shell) -> None:
    sound = shell("check", shell.world.table)
    assert (sound.code, sound.facts["sound"], sound.facts["listed"]) == (0, True, [])
    assert sound.facts["snapshots"] == len(shell.world.rows())
    head = shell.world.writer.ledger.truths[shell.world.snapshots["s9"]]
    local(head.data[0]).unlink()
    local(head.data[-1]).write_bytes(b"x")
    broken = shell("check", shell.world.table)
    assert broken.code == 1
    assert {each["path"] for each in broken.facts["listed"]} == {head.data[0], head.data[-1]}


def test_tags_are_written_listed_and_removed(shell: Shell) -> None:
    table, snapshot = shell.world.table, str(shell.world.snapshots["s3"])
    assert shell("tag", "add", table, "law", snapshot, "--retain", "forever").facts["snapshot"] == snapshot
    assert shell.world.writer.document()["refs"]["law"]["max-ref-age-ms"] == 2**63 - 1
    assert shell("tag", "add", table, "month", "law", "--retain", "30d").facts["snapshot"] == snapshot
    names = {each["name"] for each in shell("tag", "list", table).facts["tags"]}
    assert names == {"release", "aged", "law", "month"}
    assert shell("tag", "add", table, "law").code == 2
    assert shell("tag", "add", table, "firnline-fence").code == 2, "firnline moves that one"
    assert shell("tag", "remove", table, "law").facts == {"removed": "law"}
    assert shell("tag", "remove", table, "law").code == 2
    assert snapshot not in shell("plan", table).facts["expire"]


def test_a_tag_is_kept_for_what_was_asked_however_old_its_snapshot_is(shell: Shell) -> None:
    """Iceberg counts a ref's age from its snapshot: one of ninety days on an older snapshot went with the next run."""
    table, snapshot = shell.world.table, str(shell.world.snapshots["s1"])
    made = {str(each["snapshot-id"]): each["timestamp-ms"] for each in shell.world.writer.document()["snapshots"]}
    old = now_ms() - made[snapshot]
    brief = max(1, old // DAY_MS // 2)
    tag = shell("tag", "add", table, "quarter", snapshot, "--retain", f"{brief}d").facts
    until = parse_instant(tag["until"])
    assert abs(until - now_ms() - brief * DAY_MS) < 600_000
    assert tag["max_ref_age_ms"] > old
    assert "quarter" not in shell("plan", table).facts["expire_refs"]
    soon, late = (format_instant(until + each) for each in (-60_000, 60_000))
    assert "quarter" not in shell("plan", table, "--now", soon).facts["expire_refs"]
    assert "quarter" in shell("plan", table, "--now", late).facts["expire_refs"]
    listed = {each["name"]: each["until"] for each in shell("tag", "list", table).facts["tags"]}
    assert listed["quarter"] == tag["until"]


def test_a_tag_that_the_next_run_would_drop_is_refused(shell: Shell) -> None:
    table, snapshot = shell.world.table, str(shell.world.snapshots["s1"])
    shell.world.writer.change(lambda each: each["properties"].update({"history.expire.max-ref-age-ms": "1000"}))
    before = shell.world.writer.document()["refs"]
    refused = shell("tag", "add", table, "gone-at-once", snapshot)
    assert refused.code == 2
    assert "the next run would drop it" in refused.error["message"]
    assert "--retain" in refused.error["hint"]
    assert shell.world.writer.document()["refs"] == before
    assert shell("tag", "add", table, "stays", snapshot, "--retain", "1d").code == 0


def test_a_hold_is_written_for_every_engine_and_its_tag_goes_with_it(shell: Shell) -> None:
    table, snapshot = shell.world.table, str(shell.world.snapshots["s3"])
    assert shell("hold", "add", table, "lawsuit", snapshot, "--why", "case 7", "--who", "ann").code == 0
    assert shell.world.writer.document()["refs"]["firnline-hold-lawsuit"]["max-ref-age-ms"] == 2**63 - 1
    (held,) = shell("hold", "list", table).facts["holds"]
    said = {"name": "lawsuit", "who": "ann", "why": "case 7", "snapshot": snapshot, "until": None}
    assert held == {**said, "damage": None}
    assert shell("tag", "remove", table, "firnline-hold-lawsuit").code == 2
    assert shell("hold", "add", table, "lawsuit", snapshot).code == 2
    assert snapshot not in shell("plan", table).facts["expire"]
    assert shell("hold", "release", table, "lawsuit").code == 0
    assert shell("hold", "release", table, "lawsuit").code == 2
    assert snapshot in shell("plan", table).facts["expire"]


@pytest.mark.parametrize("before", [None, "true", "false"])
def test_a_table_hold_remembers_what_was_there(shell: Shell, before: str | None) -> None:
    if before is not None:
        shell.world.writer.change(lambda document: document["properties"].update({"gc.enabled": before}))
    table = shell.world.table
    shell("hold", "add", table, "one", "--why", "x")
    shell("hold", "add", table, "two", "--why", "y")
    assert shell("expire", table, "--yes").code == 14
    shell("hold", "release", table, "one")
    assert shell.world.writer.document()["properties"]["gc.enabled"] == "false"
    shell("hold", "release", table, "two")
    assert shell.world.writer.document()["properties"].get("gc.enabled") == before


@pytest.mark.parametrize("on", ["s3", None])
def test_a_hold_that_cannot_be_read_stops_every_run_and_can_be_shown_and_released(shell: Shell, on: str | None) -> None:
    world, table = shell.world, shell.world.table
    held = [] if on is None else [str(world.snapshots[on])]
    shell("hold", "add", table, "case 7", *held)
    world.writer.change(lambda document: document["properties"].update({"firnline.hold.case 7": '{"who": "ann"'}))
    for command in (["plan"], ["expire", "--yes"], ["orphans", "--older-than", "2026-01-01T00:00:00Z", "--yes"]):
        refused = shell(command[0], table, *command[1:])
        assert (refused.code, refused.error["kind"]) == (14, "collection-forbidden")
        assert "firnline.hold.case 7" in refused.error["message"]
    assert f"`firnline hold release {table} 'case 7'`" in shell("plan", table).error["hint"]
    (damaged,) = shell("hold", "list", table).facts["holds"]
    assert '{"who": "ann"' in damaged["damage"]
    page = shell("hold", "list", table, as_json=False).out
    assert "case 7 cannot be read" in page
    assert f"`firnline hold release {table} 'case 7'`" in page
    assert shell("hold", "release", table, "case 7").code == 0
    document = world.writer.document()
    assert not [name for name in (*document["properties"], *document["refs"]) if "hold" in name or "gc." in name]
    assert shell("plan", table).facts["expire"]


def test_of_two_holds_that_cannot_be_read_the_other_one_still_stops_every_run(shell: Shell) -> None:
    world, table = shell.world, shell.world.table
    shell("hold", "add", table, "one")
    damage = {"firnline.hold.one": "?", "firnline.hold.": "?"}
    world.writer.change(lambda document: document["properties"].update(damage))
    assert shell("hold", "release", table, "one").code == 0
    assert world.writer.document()["properties"]["gc.enabled"] == "false"
    assert shell("plan", table).code == 14
    assert shell("hold", "release", table, "").code == 0
    assert shell("plan", table).facts["expire"]


def test_adopt_lengthens_what_other_engines_read_and_says_so_first(shell: Shell) -> None:
    Path("firnline.yaml").write_text("keep: {within: 60d, last: 7}\n")
    before = everything(shell.world)
    refused = shell("adopt", shell.world.table)
    assert (refused.code, refused.error["kind"]) == (2, "usage")
    assert everything(shell.world) == before
    facts = shell("adopt", shell.world.table, "--yes").facts
    assert {each["what"]: each["after"] for each in facts["written"]} == {
        "history.expire.max-snapshot-age-ms": str(60 * 86_400_000),
        "history.expire.min-snapshots-to-keep": "7",
    }
    place = shell.world.writer.place()
    assert shell("adopt", shell.world.table, "--yes").facts["written"] == []
    assert shell.world.writer.place() == place


# ---------------------------------------------------------------- 2: say it differently


@pytest.mark.parametrize("as_json", [True, False])
def test_without_yes_and_without_a_terminal_nothing_happens(shell: Shell, as_json: bool) -> None:
    before = everything(shell.world)
    said = shell("expire", shell.world.table, "--grace", "0s", as_json=as_json)
    assert said.code == 2
    assert "--yes" in said.err
    assert everything(shell.world) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["undo", "lake.db.t"],
        ["commit", "no-run-at-all"],
        ["undo", "lake.db.t@20260101T000000Z-ffffff"],
        ["commit", "lake.db.t@20260101T000000Z-ffffff"],
        ["runs", "show"],
        ["expire", "lake.db.t", "--grace", "soon", "--yes"],
        ["expire", "lake.db.t", "--blast-radius", "0.9", "--yes"],
        ["expire", "lake.db.t", "--older-than", "2026-01-01T00:00:00", "--yes"],
        ["hold", "add", "lake.db.t", "x", "12345"],
        ["tag", "add", "lake.db.t", "x", "12345"],
        ["expire", "lake.db.t", "--no-such-option"],
    ],
)
def test_what_was_said_wrongly_is_2_with_a_hint_and_changes_nothing(shell: Shell, arguments: list[str]) -> None:
    before = everything(shell.world)
    said = shell(*arguments)
    assert said.code == 2
    assert said.error["hint"]
    assert said.out == ""
    assert everything(shell.world) == before


def test_a_run_that_is_past_its_commit_has_nothing_to_commit(shell: Shell) -> None:
    named = shell.expire()
    assert shell("commit", named).code == 2


# ---------------------------------------------------------------- 3 and up: why it did not work


def test_3_some_deletes_failed_and_the_next_purge_tries_them_again(shell: Shell) -> None:
    """A folder in the place of a file is something that no delete may take."""
    named = shell.expire("1s")
    victim = victims(shell)[0]
    data = local(victim).read_bytes()
    local(victim).unlink()
    local(victim).mkdir()
    time.sleep(1.1)
    failed = shell("purge", named)
    assert (failed.code, failed.error["kind"]) == (3, "deletes-failed")
    assert shell("runs", "show", named).facts["outcomes"]["failed"]["files"] == 1
    local(victim).rmdir()
    local(victim).write_bytes(data)
    facts = shell("purge", named).facts
    assert facts["state"] == "done"
    assert "failed" not in facts["outcomes"]
    assert not local(victim).exists()


def victims(shell: Shell) -> list[str]:
    """Returns the data files that only the expired snapshots need."""
    truths = shell.world.writer.ledger.truths
    kept = {path for each in shell.world.rows() for path in truths[each].files}
    gone = {path for name in EXPIRED for path in truths[shell.world.snapshots[name]].data}
    return sorted(gone - kept)


def test_10_no_such_table_and_what_was_perhaps_meant(shell: Shell) -> None:
    said = shell("expire", "lake.db.tt", "--yes")
    assert (said.code, said.error["kind"]) == (10, "no-such-table")
    assert shell.world.table in said.error["hint"]
    named = shell.expire()
    shell.world.actions.rename()
    assert shell("purge", named).code == 10
    assert shell("undo", named).code == 10


def test_11_somebody_else_works_here_until_the_lease_is_broken(shell: Shell) -> None:
    world = shell.world
    folder = f"{world.writer.location}/_firnline/lease"
    Lease(ObjectStores(), folder, LeaseTimes(), "elsewhere:1:ab", now_ms).acquire()
    said = shell("expire", world.table, "--grace", "0s", "--yes")
    assert (said.code, said.error["kind"]) == (11, "lease-held")
    assert "elsewhere:1:ab" in said.error["message"]
    assert set(world.rows()) == set(world.snapshots.values())
    (named,) = [each["run"] for each in shell("runs").facts["runs"]]
    assert shell("resume", named, "--break-lease").code == 0
    world.check()


def test_12_the_table_is_another_one_now(shell: Shell) -> None:
    named = shell.expire()
    shell.world.actions.drop_and_recreate()
    files = shell.world.files()
    for command in ("purge", "undo", "resume"):
        said = shell(command, named)
        assert (said.code, said.error["kind"]) == (12, "table-moved")
    assert shell.world.files() == files


def test_13_nobody_knows_whether_it_was_committed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    files = shell.world.files()
    with monkeypatch.context() as silent:
        silent.setattr(SqlCatalog, "swap", lambda *_: SwapOutcome.UNKNOWN)
        silent.setattr(time, "sleep", lambda _: None)
        said = shell("expire", shell.world.table, "--grace", "0s", "--yes")
    assert (said.code, said.error["kind"]) == (13, "outcome-unknown")
    assert files <= shell.world.files()
    assert "resume" in said.error["hint"]
    assert shell("resume").code == 11  # the commit may still be on its way: nobody acts until that is over
    assert [each["state"] for each in shell("resume", "--break-lease").facts["runs"]] == ["done"]
    shell.world.check()


def test_14_refused_for_safety(shell: Shell) -> None:
    table = shell.world.table
    capped = shell("expire", table, "--blast-radius", "1%", "--yes")
    assert (capped.code, capped.error["kind"]) == (14, "blast-radius")
    named = shell.expire("0s")
    late = shell("undo", named)
    assert (late.code, late.error["kind"]) == (14, "refused")
    local(next(path for path in shell.world.files() if path.endswith("list.avro"))).write_bytes(b"")
    damaged = shell("expire", table, "--older-than", str(now_ms() + 1000), "--yes")
    assert (damaged.code, damaged.error["kind"]) == (14, "unreadable")


def test_130_ctrl_c_leaves_a_run_that_goes_on(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_ROWS", 1)
    plain = ObjectDelete.delete

    def interrupted(self: ObjectDelete, *what: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return plain(self, *what)

    with monkeypatch.context() as pressed:
        pressed.setattr(ObjectDelete, "delete", interrupted)
        said = shell("expire", shell.world.table, "--grace", "0s", "--yes")
    assert said.code == 130
    assert said.error["kind"] == "interrupted"
    (left,) = shell("runs").facts["runs"]
    assert left["state"] == "purging"
    assert left["outcomes"]["deleted"]["files"] == 1
    assert shell("resume", left["run"]).facts["state"] == "done"
    shell.world.check()


def test_trouble_with_one_table_does_not_stop_the_others_if_it_shares_no_file(shell: Shell, tmp_path: Path) -> None:
    """Two tables in one catalog: the first cannot be read, so it may need files of the second, unless the operator says
    that it shares none; then the second is purged all the same.
    """
    named = shell.expire("1s")
    shell.world.pointers.register("a_broken_one", "file:///nowhere/00000-x.metadata.json")
    time.sleep(1.1)
    said = shell("purge")
    assert said.code == 14
    assert "`sharing: none` for lake.db.a_broken_one" in said.err
    assert json.loads(said.out)["runs"] == []
    alone = {"catalogs": {"lake": {"namespaces": {"db": {"tables": {"a_broken_one": {"sharing": "none"}}}}}}}
    (tmp_path / "firnline.yaml").write_text(json.dumps(alone))
    said = shell("purge")
    assert said.code == 14
    assert "a_broken_one" in said.err
    assert [(each["run"], each["state"]) for each in json.loads(said.out)["runs"]] == [(named, "done")]


# ---------------------------------------------------------------- on a terminal


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 130)])
def test_a_person_is_shown_the_plan_and_asked(world: World, tmp_path: Path, answer: str, code: int) -> None:
    before = set(world.rows())
    mine, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from firnline.cli import main; main()", "expire", world.table, "--grace", "1h"],
        env={**os.environ, **environment(world)}, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown = read_until(mine, "[y/N]")
    os.write(mine, f"{answer}\n".encode())
    shown += read_until(mine, None)
    assert process.wait(timeout=60) == code
    os.close(mine)
    assert "would remove 5 snapshots" in shown
    assert f"Remove 5 snapshots and 1 ref from {world.table}? Files stay 1h. [y/N]" in shown
    before_the_question = shown[: shown.index("[y/N]")]
    assert "hint:" not in before_the_question
    assert "nothing was changed" not in before_the_question
    assert ("nothing was changed" in shown) is (answer == "n")
    assert (set(world.rows()) == before) is (answer == "n")


def read_until(terminal: int, words: str | None) -> str:
    """Returns what the terminal shows up to some words, or up to its end."""
    shown = ""
    deadline = time.monotonic() + 60
    while words is None or words not in shown:
        assert time.monotonic() < deadline, shown
        if select.select([terminal], [], [], 1)[0]:
            try:
                shown += os.read(terminal, 65536).decode(errors="replace")
            except OSError:  # the other side is closed
                return shown
    return shown
